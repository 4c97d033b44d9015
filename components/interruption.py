"""The request of a signal to end this process, which is checked before irreversible steps.

The handler of a signal can only raise an exception, wherever the main thread is. In a destructor or a
callback of the garbage collection (JAX has one) Python drops it, and the process would continue. So
the request is kept until the process ends.
"""


class RunInterruptedError(KeyboardInterrupt):
    """A signal came; a separate class, since the user's code may raise KeyboardInterrupt, too."""


class Interruption:
    def __init__(self) -> None:
        self.reason: str | None = None
        self.is_held = False

    def check(self) -> None:
        """Raises RunInterruptedError if a signal came."""
        if self.reason is not None:
            raise RunInterruptedError(self.reason)


interruption = Interruption()
