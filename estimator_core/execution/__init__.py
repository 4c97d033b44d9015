"""Ways of running the graph of a model: one file each, with a common interface (`base.Execution`)."""
