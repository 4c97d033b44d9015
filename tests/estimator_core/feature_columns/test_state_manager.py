import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns.state_manager import StateManager, create_state

pytestmark = pytest.mark.usefixtures("graph")

fc = tf.feature_column
COLUMN = fc.numeric_column("age")


def test_it_knows_what_it_made():
    manager = StateManager()
    assert not manager.has_variable(COLUMN, "weights")
    made = manager.create_variable(COLUMN, "weights", [2])
    assert made.dtype.base_dtype == tf.float32
    assert len(tf1.trainable_variables()) == 1
    assert manager.has_variable(COLUMN, "weights")
    assert manager.get_variable(COLUMN, "weights") is made
    assert not manager.has_variable(COLUMN, "bias")
    assert not manager.has_variable(fc.numeric_column("other"), "weights")
    with pytest.raises(ValueError, match="weights of column age already exists"):
        manager.create_variable(COLUMN, "weights", [2])
    with pytest.raises(ValueError, match="age has no variable named bias"):
        manager.get_variable(COLUMN, "bias")
    with pytest.raises(ValueError, match="use_resource=False"):
        manager.create_variable(COLUMN, "others", [2], use_resource=False)


def test_variables_have_the_names_and_settings_of_their_scope():
    with tf1.variable_scope("outer", regularizer=lambda variable: 10.0 * tf.reduce_sum(variable)):
        made = StateManager().create_variable(
            COLUMN, "weights", [2, 3], tf.float64, initializer=tf1.initializers.constant(0.5)
        )
    assert (made.op.name, made.dtype.base_dtype) == ("outer/age/weights", tf.float64)
    (loss,) = tf1.losses.get_regularization_losses()
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(made).tolist() == [[0.5] * 3] * 2
        assert session.run(loss) == 30.0


@pytest.mark.parametrize("of_manager", [True, False])
@pytest.mark.parametrize("of_column", [True, False])
def test_training_needs_the_consent_of_both(of_manager, of_column):
    made = StateManager(of_manager).create_variable(COLUMN, "weights", [2], trainable=of_column)
    assert made.trainable == (of_manager and of_column)
    assert bool(tf1.trainable_variables()) == (of_manager and of_column)


def test_existing_variables_and_resources_are_found_by_their_column_and_name():
    manager = StateManager()
    variable = tf1.get_variable("existing", [2])
    manager.add_variable(COLUMN, variable)
    assert manager.get_variable(COLUMN, "existing:0") is variable
    assert not manager.has_resource(COLUMN, "table")
    manager.add_resource(COLUMN, "table", "anything")
    assert manager.has_resource(COLUMN, "table")
    assert manager.get_resource(COLUMN, "table") == "anything"
    with pytest.raises(ValueError, match="age has no resource named other"):
        manager.get_resource(COLUMN, "other")


def test_states_are_created_in_the_current_scope_but_shared_ones_at_the_root():
    ids = [fc.categorical_column_with_identity(name, 4) for name in ("seen", "bought")]
    columns = [fc.embedding_column(ids[0], 2), *fc.shared_embeddings(ids, 3), COLUMN]
    with tf1.variable_scope("model/input"):
        create_state(columns, StateManager())
    assert {v.op.name: v.shape.as_list() for v in tf1.trainable_variables()} == {
        "model/input/seen_embedding/embedding_weights": [4, 2],
        "bought_seen_shared_embedding": [4, 3],
    }


def test_shared_states_obey_the_partitioner_of_the_scope():
    ids = fc.categorical_column_with_identity("seen", 4)
    halves = tf1.fixed_size_partitioner(2)
    with tf1.variable_scope("model", partitioner=halves):
        create_state(fc.shared_embeddings([ids], 3), StateManager())
    assert [v.op.name for v in tf1.trainable_variables()] == [
        "seen_shared_embedding/part_0",
        "seen_shared_embedding/part_1",
    ]
