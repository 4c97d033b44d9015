"""Shared basics of all packages: `EstimatorSpec`, calls of the user's functions, modes and keys."""
