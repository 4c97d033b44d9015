"""The three ways in which a model_fn is called."""


class ModeKeys:
    """Names of the modes that a `model_fn` receives as its `mode` argument.

    Source: `tf.estimator.ModeKeys`; the values appear in user code and in SavedModel tags.
    """

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"

    ALL = (TRAIN, EVAL, PREDICT)
