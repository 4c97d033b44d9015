"""The reference implementation's modules; only its own environment has them."""

import zlib

import tensorflow as tf


def names_for(program):
    """Returns the module of the reference that a program speaks to."""
    return tf.compat.v1.estimator if program.v1 else tf.estimator


def run_config(name, program, model_dir, **config):
    """Returns the RunConfig with which the reference draws a program's initial variables."""
    seed = zlib.crc32(name.encode()) if program.seed is None else program.seed
    return names_for(program).RunConfig(
        model_dir=model_dir, save_summary_steps=1, tf_random_seed=seed, **config
    )
