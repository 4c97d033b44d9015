"""The ExampleValidator checks new data against the schema and against the data of the served model."""
