"""Messages about training steps that XLA does not compile."""

from __future__ import annotations

NOT_COMPILED = "XLA does not compile training steps, as %s."


def cant_be_compiled(reason: str) -> ValueError:
    """Returns the error for steps that must be compiled but can't be."""
    return ValueError(
        f"XLA can't compile the training steps: {reason}. Set RunConfig's jit_compile to 'auto' or False. "
        "Received: jit_compile=True"
    )
