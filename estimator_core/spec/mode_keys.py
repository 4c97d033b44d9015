"""The three modes of a model_fn."""


class ModeKeys:
    """Names of the modes, the `mode` argument of a `model_fn`.

    Source: `tf.estimator.ModeKeys`; the values appear in user code and in SavedModel tags.
    """

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"

    ALL = (TRAIN, EVAL, PREDICT)
