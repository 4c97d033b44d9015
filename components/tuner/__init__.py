"""Searches hyperparameters of the user's training function with Optuna."""
