"""Tags words by a conditional random field; words and tags come from vocabulary files.

The forward algorithm and the Viterbi decoder are the project's own since tf.contrib.crf has gone.
"""

import functools

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops.lookup_ops import index_table_from_file, index_to_string_table_from_file

tf.disable_v2_behavior()

WORDS = ["anna", "bert", "lives", "works", "in", "near", "paris", "rome", "and"]
TAGS = ["O", "PER", "LOC"]
TAG_OF = {"anna": "PER", "bert": "PER", "paris": "LOC", "rome": "LOC"}
RNG = np.random.RandomState(3)
SENTENCES = [list(RNG.choice([*WORDS, "oslo"], RNG.randint(2, 7))) for _ in range(40)]
TABLE = RNG.uniform(-0.5, 0.5, [len(WORDS) + 1, 5]).astype(np.float32)
PROJECTION = RNG.uniform(-0.5, 0.5, [15, 3]).astype(np.float32)


def write_files():
    for name, lines in (
        ("words.txt", [" ".join(words) for words in SENTENCES]),
        ("tags.txt", [" ".join(TAG_OF.get(w, "O") for w in words) for words in SENTENCES]),
        ("vocab.words.txt", WORDS),
        ("vocab.tags.txt", TAGS),
    ):
        with open(name, "w") as file:
            file.write("\n".join(lines) + "\n")


def generator_fn(words, tags):
    with open(words) as word_file, open(tags) as tag_file:
        for word_line, tag_line in zip(word_file, tag_file, strict=True):
            tokens = word_line.split()
            yield (tokens, len(tokens)), tag_line.split()


def input_fn(words, tags, params=None, num_epochs=1):
    shapes = (([None], ()), [None])
    types = ((tf.string, tf.int32), tf.string)
    data = tf.data.Dataset.from_generator(
        functools.partial(generator_fn, words, tags), output_types=types, output_shapes=shapes
    )
    padding = (("<pad>", 0), "O")
    return data.repeat(num_epochs).padded_batch(params["batch_size"], shapes, padding).prefetch(1)


def sequence_score(potentials, tags, mask, transitions):
    emitted = tf.reduce_sum(potentials * tf.one_hot(tags, len(TAGS)), 2)
    pairs = tf.stack([tags[:, :-1], tags[:, 1:]], 2)
    return tf.reduce_sum(emitted * mask, 1) + tf.reduce_sum(tf.gather_nd(transitions, pairs) * mask[:, 1:], 1)


def log_normalizer(potentials, mask, transitions):
    def step(alphas, inputs):
        potential, is_word = inputs
        new = tf.reduce_logsumexp(alphas[:, :, None] + transitions[None], 1) + potential
        return tf.where(tf.tile(is_word[:, None] > 0, [1, len(TAGS)]), new, alphas)

    rest = (tf.transpose(potentials[:, 1:], [1, 0, 2]), tf.transpose(mask[:, 1:]))
    alphas = tf.foldl(step, rest, initializer=potentials[:, 0])
    return tf.reduce_logsumexp(alphas, 1)


def viterbi(potentials, mask, transitions):
    """Returns the best tags, `[batch_size, length]`; those of padding are arbitrary."""

    def forward(state, inputs):
        best, _ = state
        potential, is_word = inputs
        scores = best[:, :, None] + transitions[None]
        is_word = tf.tile(is_word[:, None] > 0, [1, len(TAGS)])
        same = tf.tile(tf.range(len(TAGS))[None], [tf.shape(best)[0], 1])
        new = tf.reduce_max(scores, 1) + potential
        back = tf.argmax(scores, 1, output_type=tf.int32)
        return tf.where(is_word, new, best), tf.where(is_word, back, same)

    rest = (tf.transpose(potentials[:, 1:], [1, 0, 2]), tf.transpose(mask[:, 1:]))
    start = (potentials[:, 0], tf.zeros_like(potentials[:, 0], tf.int32))
    best, backs = tf.scan(forward, rest, initializer=start)
    last = tf.argmax(best[-1], 1, output_type=tf.int32)

    def backward(tag, back):
        return tf.gather(back, tag, batch_dims=1)

    before = tf.scan(backward, backs, initializer=last, reverse=True)
    return tf.transpose(tf.concat([before, last[None]], 0))


def model_fn(features, labels, mode, params):
    if isinstance(features, dict):
        features = features["words"], features["nwords"]
    words, lengths = features
    word_ids = index_table_from_file(params["words"], num_oov_buckets=1).lookup(words)
    table = tf.get_variable("embeddings", initializer=TABLE)
    embedded = tf.nn.embedding_lookup(table, word_ids)
    around = tf.pad(embedded, [[0, 0], [1, 1], [0, 0]])
    windows = tf.concat([around[:, :-2], embedded, around[:, 2:]], 2)
    potentials = tf.tensordot(windows, tf.get_variable("projection", initializer=PROJECTION), 1)
    transitions = tf.get_variable("transitions", [3, 3], initializer=tf.zeros_initializer())
    mask = tf.sequence_mask(lengths, tf.shape(words)[1], dtype=tf.float32)
    predicted = viterbi(potentials, mask, transitions)
    if mode == tf.estimator.ModeKeys.PREDICT:
        strings = index_to_string_table_from_file(params["tags"]).lookup(tf.cast(predicted, tf.int64))
        return tf.estimator.EstimatorSpec(mode, predictions={"tags": strings, "mask": mask})
    tags = tf.cast(index_table_from_file(params["tags"]).lookup(labels), tf.int32)
    scores = sequence_score(potentials, tags, mask, transitions)
    loss = tf.reduce_mean(log_normalizer(potentials, mask, transitions) - scores)
    is_entity = tf.cast(predicted > 0, tf.float32)
    metrics = {
        "acc": tf.metrics.accuracy(tags, predicted, mask),
        "precision": tf.metrics.precision(tags > 0, predicted > 0, mask),
        "recall": tf.metrics.recall(tags > 0, predicted > 0, mask),
        "entities": tf.metrics.mean(is_entity, mask),
    }
    tf.summary.histogram("potentials", potentials)
    train_op = tf.train.AdamOptimizer(0.012, epsilon=1e-3).minimize(
        loss, global_step=tf.train.get_or_create_global_step()
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def main():
    write_files()
    params = {"batch_size": 10, "words": "vocab.words.txt", "tags": "vocab.tags.txt"}
    files = functools.partial(input_fn, "words.txt", "tags.txt", params)
    config = tf.estimator.RunConfig("model", save_summary_steps=4, save_checkpoints_steps=12)
    estimator = tf.estimator.Estimator(model_fn, config=config, params=params)
    hook = tf.estimator.experimental.stop_if_no_increase_hook(
        estimator, "acc", max_steps_without_increase=500, min_steps=8, run_every_secs=None, run_every_steps=4
    )
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(functools.partial(files, num_epochs=6), hooks=[hook]),
        tf.estimator.EvalSpec(files, steps=None, throttle_secs=0),
    )

    def serving_input_receiver_fn():
        words = tf.placeholder(tf.string, [None, None], "words")
        lengths = tf.placeholder(tf.int32, [None], "nwords")
        features = {"words": words, "nwords": lengths}
        return tf.estimator.export.ServingInputReceiver(features, features)

    estimator.export_saved_model("export", serving_input_receiver_fn)
    tagged = [
        [tag.decode() for tag, is_word in zip(row["tags"], row["mask"], strict=True) if is_word]
        for row in estimator.predict(files)
    ]
    return {"metrics": estimator.evaluate(files), "tagged": tagged[:6]}
