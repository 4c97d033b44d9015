"""Ready projects to run and to copy from."""
