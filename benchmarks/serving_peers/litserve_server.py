"""LitServe around the SavedModel. BATCH is the largest batch, 0 for none; PORT the port."""

import os

import litserve
from saved_model_rows import SavedModelRows

BATCH = int(os.environ["BATCH"])


class Taxi(litserve.LitAPI):
    """The API."""

    def setup(self, device):
        """Loads the model, in the process that predicts."""
        self.model = SavedModelRows()

    def decode_request(self, request):
        """Returns the row of a request."""
        return request["row"]

    def predict(self, x):
        """Returns the probabilities of the classes, for each row of a batch if there are batches."""
        return self.model.scores(x) if BATCH else self.model.scores([x])[0]

    def encode_response(self, output):
        """Returns the answer to a request."""
        return {"scores": output}


if __name__ == "__main__":
    api = Taxi(max_batch_size=BATCH or 1, batch_timeout=0.0)
    server = litserve.LitServer(api, accelerator="cpu", devices=1, fast_queue=True)
    server.run(
        host="127.0.0.1", port=int(os.environ["PORT"]), generate_client_file=False, log_level="warning"
    )
