"""Generic models for tables: everything is inferred from the columns.

A `TabularPlan` (inferred by `infer_plan`) drives a `preprocessing_fn` and a `trainer_fn` that
follow the same contract as a user's own module.
"""
