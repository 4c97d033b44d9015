"""How the graph of a model runs: one file per way, behind one interface (`base.Execution`)."""
