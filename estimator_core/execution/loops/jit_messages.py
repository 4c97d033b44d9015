"""What is said when XLA does not compile training steps."""

from __future__ import annotations

NOT_COMPILED = "XLA does not compile training steps, as %s."


def cant_be_compiled(reason: str) -> ValueError:
    """Returns the error of steps that must be compiled and can't be."""
    return ValueError(
        f"XLA can't compile the training steps: {reason}. Set RunConfig's jit_compile to 'auto' or False. "
        "Received: jit_compile=True"
    )
