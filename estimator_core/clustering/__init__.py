"""The parts of k-means: distances, initial centers, updates of the centers."""
