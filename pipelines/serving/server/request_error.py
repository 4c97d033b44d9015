"""An error that a client gets, with its HTTP status."""


class RequestError(Exception):
    """A request that gets no prediction."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}
