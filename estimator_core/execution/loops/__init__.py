"""Many steps in one session call: loops in the graph, compiled steps, and loops of an evaluation."""
