"""Campaigns: the same command very often, each time disturbed in another way, and what came of it."""
