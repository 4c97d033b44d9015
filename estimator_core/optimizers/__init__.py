"""From a loss to the operation of a training step, with whatever optimizer a user brings."""
