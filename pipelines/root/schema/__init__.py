"""The root's schema: its file, its origin, and its acceptance."""
