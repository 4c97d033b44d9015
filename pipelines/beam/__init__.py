"""Beam on an engine: what `[beam]` says, as options of Beam, and what has to run beside it."""
