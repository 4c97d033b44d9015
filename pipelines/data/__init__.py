"""Finding, checking and profiling the CSV files of a run, before anything is written."""
