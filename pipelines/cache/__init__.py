"""The cache: fingerprints, reasons for running a component, and runs in which nothing has changed."""
