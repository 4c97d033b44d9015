"""The gate: intervals, default checks, and the verdict on a model."""
