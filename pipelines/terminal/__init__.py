"""The terminal: progress, captured output, and signals."""
