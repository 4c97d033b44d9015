"""Retention: removes old runs and artifacts from a root, by the rules of `[retention]`."""
