"""Values of tensors with variables that a test sets."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


def value_of(build, assign=None):
    """Returns the value of what `build` makes in a new graph, with all variables set by name."""
    with tf.Graph().as_default(), tf1.Session() as session:
        output = build()
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        for variable in tf1.global_variables():
            variable.load(np.float32((assign or {})[variable.op.name]), session)
        return session.run(output)
