"""Trains with the user's trainer_fn or run_fn and writes the model."""
