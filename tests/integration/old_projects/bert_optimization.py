"""The optimizer of bert_classifier.py, and its learning rate."""

import re

import tensorflow.compat.v1 as tf


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam without bias correction, with a weight decay beside the gradient."""

    def __init__(self, learning_rate, weight_decay_rate, exclude, name="AdamWeightDecayOptimizer"):
        super().__init__(False, name)
        self.learning_rate = learning_rate
        self.weight_decay_rate = weight_decay_rate
        self.beta_1, self.beta_2, self.epsilon = 0.9, 0.999, 1e-3
        self.exclude = exclude

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            slots = {
                slot: tf.get_variable(
                    name=f"{param_name}/{slot}",
                    shape=param.shape.as_list(),
                    dtype=tf.float32,
                    trainable=False,
                    initializer=tf.zeros_initializer(),
                )
                for slot in ("adam_m", "adam_v")
            }
            grad = tf.convert_to_tensor(grad)
            next_m = self.beta_1 * slots["adam_m"] + (1.0 - self.beta_1) * grad
            next_v = self.beta_2 * slots["adam_v"] + (1.0 - self.beta_2) * tf.square(grad)
            update = next_m / (tf.sqrt(next_v) + self.epsilon)
            if not any(re.search(pattern, param_name) for pattern in self.exclude):
                update += self.weight_decay_rate * param
            assignments += [
                param.assign(param - self.learning_rate * update),
                slots["adam_m"].assign(next_m),
                slots["adam_v"].assign(next_v),
            ]
        return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, num_warmup_steps):
    """Returns the op of one step, and the learning rate of it."""
    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.train.polynomial_decay(
        tf.constant(init_lr, tf.float32), global_step, num_train_steps, end_learning_rate=0.0
    )
    steps = tf.cast(global_step, tf.float32)
    warmup = init_lr * steps / float(num_warmup_steps)
    is_warmup = tf.cast(steps < float(num_warmup_steps), tf.float32)
    learning_rate = (1.0 - is_warmup) * learning_rate + is_warmup * warmup

    optimizer = AdamWeightDecayOptimizer(
        learning_rate, weight_decay_rate=0.01, exclude=["LayerNorm", "layer_norm", "bias"]
    )
    variables = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), clip_norm=1.0)
    train_op = optimizer.apply_gradients(zip(grads, variables, strict=True), global_step=global_step)
    # apply_gradients leaves the step to us.
    new_global_step = global_step + 1
    return tf.group(train_op, [global_step.assign(new_global_step)]), learning_rate
