"""Checks of a component's outputs before the next component begins."""
