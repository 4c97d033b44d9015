from pathlib import Path

import pytest

from components.pusher.served_model import ServedModelStrategy
from tests.components.served_runs import ServedRuns
from tests.pushed_versions import add_model


@pytest.fixture
def root(tmp_path):
    return ServedRuns(tmp_path, ServedModelStrategy, "model")


def test_the_baseline_is_what_is_served_not_what_is_newest(root):
    assert root.resolve() == []
    first, second, _ = map(root.run, ("first", "second", "unpushed"))
    assert root.resolve() == []
    root.push(first, 1000)
    root.push(second, 2000)
    assert root.resolve() == [("Model", "model-second")]
    (root.serving / "2000").rename(root.folder / "withdrawn")  # a rollback
    assert root.resolve() == [("Model", "model-first")]


def test_a_version_of_unknown_origin_is_an_error_where_a_baseline_is_needed(root):
    add_model(root.serving / "1")
    message = r"Version 1 in .*serving is live.* not pushed by this Pusher.* without max_regression"
    with pytest.raises(LookupError, match=message):
        root.resolve()
    assert root.resolve(required=False) == []


def test_a_version_whose_model_was_deleted_is_an_error_too(root):
    model = root.run("first")
    root.push(model, 1000)
    Path(model).rename(root.folder / "elsewhere")
    with pytest.raises(LookupError, match=f"its model is no longer in {model}"):
        root.resolve()
