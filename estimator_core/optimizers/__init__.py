"""Construction of a training step's operation from a loss, for any kind of optimizer."""
