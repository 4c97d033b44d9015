"""A schema file into the pipeline: stock TFX, which looks at the file's path only."""
