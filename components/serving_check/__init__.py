"""Asks the model that would be pushed, and compares its answers with those that the Evaluator judged."""
