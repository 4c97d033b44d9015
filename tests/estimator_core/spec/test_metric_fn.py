from estimator_core.spec.metric_fn import MetricFn


def test_tensors_are_passed_in_order_or_by_name():
    def metric_fn(a, b):
        return {"difference": a - b}

    assert MetricFn(metric_fn, [5, 3])() == {"difference": 2}
    assert MetricFn(metric_fn, (5, 3))() == {"difference": 2}
    assert MetricFn(metric_fn, {"b": 5, "a": 3})() == {"difference": -2}
