"""A premade Estimator on all devices of this computer: how far does a spring stretch under a load?"""

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
config = tf.estimator.RunConfig(train_distribute=strategy, eval_distribute=strategy)
spring = tf.estimator.LinearRegressor(
    feature_columns=[tf.feature_column.numeric_column("load")], optimizer="SGD", config=config
)


def measurements():
    measured = tf.data.Dataset.from_tensors(({"load": [1.0]}, [3.0]))
    return measured.repeat(480).batch(8)


spring.train(input_fn=measurements, steps=12)
spring.evaluate(input_fn=measurements, steps=6)
