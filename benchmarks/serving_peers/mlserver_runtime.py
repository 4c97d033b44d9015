"""MLServer around the SavedModel. Its batches are a setting of the model."""

import mlserver
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput
from saved_model_rows import SavedModelRows


class Taxi(mlserver.MLModel):
    """The runtime: a tensor for each column."""

    async def load(self) -> bool:
        """Loads the model."""
        self.model = SavedModelRows()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Returns the probabilities of the classes for each row."""
        names = [one.name for one in payload.inputs]
        columns = [one.data.root for one in payload.inputs]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        scores = self.model.scores(rows)
        output = ResponseOutput(
            name="scores",
            shape=[len(rows), len(scores[0])],
            datatype="FP32",
            data=[one for row in scores for one in row],
        )
        return InferenceResponse(model_name=self.name, outputs=[output])
