"""BentoML around the SavedModel. BATCH is the largest batch, 0 for none."""

import os

import bentoml
from saved_model_rows import SavedModelRows

BATCH = int(os.environ["BATCH"])
OPTIONS = {"batchable": True, "max_batch_size": BATCH} if BATCH else {}


@bentoml.service(workers=1)
class Taxi:
    """The service."""

    def __init__(self):
        self.model = SavedModelRows()

    @bentoml.api(**OPTIONS)
    def predict(self, rows: list[dict]) -> list[list[float]]:
        """Returns the probabilities of the classes for each row."""
        return self.model.scores(rows)
