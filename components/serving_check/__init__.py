"""Asks the model that would be pushed, and compares its answers with what the Evaluator judged."""
