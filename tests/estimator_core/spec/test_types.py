import estimator_core as est
from estimator_core.spec import types


def test_an_estimator_is_what_hooks_and_exporters_need():
    for name in ("model_dir", "config", "eval_dir", "export_saved_model"):
        assert hasattr(types.EstimatorLike, name)
        assert hasattr(est.Estimator, name)


def test_hooks_are_tensorflows():
    assert est.SessionRunHook is types.Hook
    assert est.CheckpointSaverListener is types.SavingListener
