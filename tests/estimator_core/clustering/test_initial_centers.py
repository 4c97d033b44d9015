"""A worker that is not the chief waits for the centers."""

import tensorflow.compat.v1 as tf1

from estimator_core.clustering.initial_centers import InitialCentersHook


def test_a_worker_waits_for_the_chief(session):
    is_initialized = tf1.get_variable("initialized", initializer=False, use_resource=True)
    by_chief, must_not_run = is_initialized.assign(True), is_initialized.assign(False)
    session.run(tf1.global_variables_initializer())
    waits = []

    def sleep(secs):
        waits.append(secs)
        if len(waits) == 3:
            session.run(by_chief)

    hook = InitialCentersHook(must_not_run, is_initialized, is_chief=False, sleep=sleep)
    hook.after_create_session(session, None)
    assert waits == [1.0, 1.0, 1.0]
