"""A module of settings, as programs have one, for test_build.py."""

FACTOR = 1.0
