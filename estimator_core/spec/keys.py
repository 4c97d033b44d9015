"""The names of heads' predictions, metrics and losses."""


class PredictionKeys:
    """Keys of a head's predictions. Source: tf.estimator's prediction dicts."""

    CLASSES = "classes"
    CLASS_IDS = "class_ids"
    ALL_CLASSES = "all_classes"
    ALL_CLASS_IDS = "all_class_ids"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PREDICTIONS = "predictions"
    PROBABILITIES = "probabilities"


class MetricKeys:
    """Keys of a head's evaluation metrics and summaries. Source: `tf.estimator` evaluation results."""

    LOSS = "loss"
    LOSS_MEAN = "average_loss"
    LOSS_REGULARIZATION = "regularization_loss"

    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy_baseline"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    LABEL_MEAN = "label/mean"
    PRECISION = "precision"
    PREDICTION_MEAN = "prediction/mean"
    PROBABILITY_MEAN = "probability_mean"
    RECALL = "recall"

    ACCURACY_AT_THRESHOLD = "accuracy/positive_threshold_{:g}"
    PRECISION_AT_THRESHOLD = "precision/positive_threshold_{:g}"
    RECALL_AT_THRESHOLD = "recall/positive_threshold_{:g}"


class SignatureKeys:
    """Names of the signatures that a head exports. Source: tf.estimator's SavedModels."""

    CLASSIFICATION = "classification"
    PREDICT = "predict"
    REGRESSION = "regression"
