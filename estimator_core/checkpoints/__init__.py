"""Reading checkpoints and starting from them."""
