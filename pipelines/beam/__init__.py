"""Beam on an engine: the Beam options of `[beam]`, and the processes that an engine needs."""
