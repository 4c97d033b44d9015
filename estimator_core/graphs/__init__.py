"""From a model_fn and its inputs to a built `Program`, and the loops that run one."""
