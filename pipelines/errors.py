"""The errors that the command line turns into a message and an exit code."""


class BadInputError(ValueError):
    """The data or the configuration cannot be used; nothing was written. Exit code 2."""


class RunFailedError(RuntimeError):
    """A component of a run failed. Exit code 1.

    Attributes:
      component: Node id of the component, such as `Trainer`.
    """

    def __init__(self, component: str, message: str):
        super().__init__(message)
        self.component = component
