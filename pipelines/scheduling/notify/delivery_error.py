"""The error of a notification that was not accepted."""


class DeliveryError(RuntimeError):
    """The receiver has not accepted a notification.

    Attributes:
      taken: Names of the other receivers of the same notification, which have accepted it.
    """

    def __init__(self, message: str, taken: tuple[str, ...] = ()):
        super().__init__(message)
        self.taken = taken
