"""The request to end this process, which a signal leaves: what can't be undone looks at it first.

The handler of a signal can only raise an exception, wherever the main thread is. In a destructor or a
callback of the garbage collection (JAX has one) Python drops it, and everything would go on. So the
request is kept, until the process ends.
"""


class RunInterruptedError(KeyboardInterrupt):
    """A signal has come; a class of its own, as the user's code may raise KeyboardInterrupt, too."""


class Interruption:
    """The request to end, and what is done about it.

    Attributes:
        reason: Name of the signal that has come; None without one.
        is_held: Whether no exception is to be raised now, as what runs looks at `reason` itself, and soon.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.is_held = False

    def check(self) -> None:
        """Raises RunInterruptedError if a signal has come."""
        if self.reason is not None:
            raise RunInterruptedError(self.reason)


interruption = Interruption()
"""That of this process."""
