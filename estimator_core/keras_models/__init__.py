"""Keras models as Estimators, and the way back."""
