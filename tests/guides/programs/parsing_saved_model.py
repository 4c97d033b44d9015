"""From an Estimator to a SavedModel that takes serialized tf.Examples: do tomatoes ripen in this sun?"""

import os
import tempfile

import tensorflow as tf

sun = tf.feature_column.numeric_column("hours_of_sun")
classifier = tf.estimator.LinearClassifier(feature_columns=[sun])


def days():
    observed = ({"hours_of_sun": [2.0, 4.0, 9.0, 11.0]}, [0, 0, 1, 1])
    return tf.data.Dataset.from_tensor_slices(observed).repeat(150).shuffle(32).batch(20)


classifier.train(days)

export_base = os.path.join(tempfile.mkdtemp(), "tomatoes")
receiver_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(
    tf.feature_column.make_parse_example_spec([sun])
)
export_path = classifier.export_saved_model(export_base, receiver_fn)
loaded = tf.saved_model.load(export_path)


def ripening(hours):
    """Returns the predictions for a day."""
    day = tf.train.Example()
    day.features.feature["hours_of_sun"].float_list.value.append(hours)
    return loaded.signatures["predict"](examples=tf.constant([day.SerializeToString()]))


for hours in (3.0, 10.0):
    print(hours, ripening(hours))
