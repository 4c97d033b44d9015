"""The context in params["context"]."""

import pytest

from estimator_core.tpu.tpu_context import TPUContext
from tests.estimator_core.shard_programs import input_fn


def test_the_context_of_a_model_fn_is_not_that_of_an_input_fn(make_sharded):
    def curious_model_fn(features, labels, mode, params):
        assert params["context"].num_hosts == 1
        return params["context"].current_input_fn_deployment()

    with pytest.raises(RuntimeError, match="is for input_fn"):
        make_sharded(curious_model_fn).train(input_fn, steps=1)


def test_an_input_fn_for_each_shard_knows_which_one_it_feeds():
    context = TPUContext(num_replicas=4, invocation=1, num_invocations=2)
    assert context.current_host == 0
    assert context.current_input_fn_deployment() == ("/device:CPU:0", 1, 2, 2)
    assert context.device_for_replica(3) == ("/device:CPU:0", 3)
    assert context.tpu_host_placement_function(host_id=0) == "/device:CPU:0"


def test_copies_of_several_cores():
    """Four copies of two cores on a board of 2 x 2 chips with two cores each."""
    context = TPUContext(num_replicas=4, num_cores_per_replica=2)
    assert context.num_replicas == 4
    assignment = context.device_assignment
    assert (assignment.num_replicas, assignment.num_cores_per_replica) == (4, 2)
    assert assignment.topology.mesh_shape.tolist() == [2, 2, 1, 2]
    first_cores = [context.device_for_replica(replica)[1] for replica in range(4)]
    assert sorted(first_cores) == [0, 2, 4, 6]  # one for each chip
    with pytest.raises(ValueError, match="models without num_cores_per_replica"):
        context.num_of_replicas_per_host  # noqa: B018
    in_input_fn = TPUContext(4, 0, 1, num_cores_per_replica=2)
    assert in_input_fn.current_input_fn_deployment() == ("/device:CPU:0", 0, 1, 4)
    with pytest.raises(RuntimeError, match="is for model_fn"):
        in_input_fn.device_assignment  # noqa: B018


@pytest.mark.parametrize("cores", [1, 4, 8, 16, 128])
def test_every_copy_has_cores_of_its_own(cores):
    assignment = TPUContext(3, num_cores_per_replica=cores).device_assignment
    ordinals = {
        assignment.tpu_ordinal(replica=replica, logical_core=core)
        for replica in range(3)
        for core in range(cores)
    }
    assert len(ordinals) == 3 * cores


def test_without_cores_there_is_no_assignment():
    context = TPUContext(num_replicas=8)
    assert context.device_assignment is None
    assert context.num_of_replicas_per_host == 8
    assert context.device_for_replica(3) == ("/device:CPU:0", 3)
    assert context.tpu_host_placement_function(host_id=0) == "/device:CPU:0"
