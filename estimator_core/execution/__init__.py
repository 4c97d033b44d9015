"""Ways of running the graph of a model: one file each, behind one interface (`base.Execution`)."""
