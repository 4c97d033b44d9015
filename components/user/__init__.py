"""Loads the user's code and computes its fingerprint."""
