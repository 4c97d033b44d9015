"""The user's code: loading it, and its fingerprint."""
