"""Conversion of Keras models to Estimators, and of trained weights back."""
