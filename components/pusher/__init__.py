"""Pushes a blessed model to a versioned directory."""
