"""From examples to metrics by slice."""
