import pytest

from pipelines.config.load import load_config
from pipelines.kubeflow.compile.admission import without_effect


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ((), []),
        (("retention.runs=5", "retention.days=30"), []),
        (("retention.artifacts=2", "retention.checkpoints=2"), []),
        (("notify.webhook_env=HOOK", "retention.artifacts=2"), ["[notify]"]),
    ],
)
def test_what_has_no_effect(settings, named):
    found = without_effect(load_config(data="d.csv", label="y", settings=settings))
    assert len(found) == len(named)
    assert all(text.startswith(name) for text, name in zip(found, named, strict=True))
