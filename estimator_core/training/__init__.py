"""Training and evaluation together, and the roles of the tasks of a cluster."""
