from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tfx.proto.pusher_pb2 import PushDestination
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact
from tfx.utils import json_utils, proto_utils

from components.pusher import executor

MakeArtifact = Callable[..., Artifact]


@pytest.fixture
def model(make_artifact: MakeArtifact) -> Artifact:
    artifact = make_artifact(standard_artifacts.Model)
    serving = Path(artifact.uri) / "Format-Serving"
    serving.mkdir()
    (serving / "saved_model.pb").write_text("graph")
    return artifact


def run(
    base: Path, inputs: dict[str, list[Artifact]], pushed: Artifact, config: Any = None
) -> None:
    destination = PushDestination(filesystem=PushDestination.Filesystem(base_directory=str(base)))
    executor.Executor(clock=lambda: 1000.0).Do(
        inputs,
        {"pushed_model": [pushed]},
        {
            "push_destination": proto_utils.proto_to_json(destination),
            "custom_config": json_utils.dumps(config),
        },
    )


def test_a_blessed_model_is_pushed(
    model: Artifact, make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    blessing = make_artifact(standard_artifacts.ModelBlessing, blessed=1)
    pushed = make_artifact(standard_artifacts.PushedModel)
    run(tmp_path / "serving", {"model": [model], "model_blessing": [blessing]}, pushed)
    assert (tmp_path / "serving" / "1000" / "saved_model.pb").read_text() == "graph"
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_version") == "1000"
    assert pushed.get_string_custom_property("pushed_destination") == str(
        tmp_path / "serving" / "1000"
    )
    assert (Path(pushed.uri) / "saved_model.pb").read_text() == "graph"


def test_a_model_that_is_not_blessed_is_not_pushed_and_the_reason_is_kept(
    model: Artifact, make_artifact: MakeArtifact, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blessing = make_artifact(
        standard_artifacts.ModelBlessing, blessed=0, blessing_message="auc 0.5 is too low"
    )
    pushed = make_artifact(standard_artifacts.PushedModel)
    run(tmp_path / "serving", {"model": [model], "model_blessing": [blessing]}, pushed)
    reason = "the Evaluator did not bless the model: auc 0.5 is too low"
    assert not (tmp_path / "serving").exists()
    assert pushed.get_int_custom_property("pushed") == 0
    assert pushed.get_string_custom_property("not_pushed_reason") == reason
    assert f"Nothing is pushed: {reason}" in caplog.text


def test_an_infra_blessing_counts_too(
    model: Artifact, make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    pushed = make_artifact(standard_artifacts.PushedModel)
    inputs = {
        "model": [model],
        "model_blessing": [make_artifact(standard_artifacts.ModelBlessing, blessed=1)],
        "infra_blessing": [make_artifact(standard_artifacts.InfraBlessing)],
    }
    run(tmp_path / "serving", inputs, pushed)
    assert pushed.get_string_custom_property("not_pushed_reason") == (
        "the InfraValidator did not bless the model."
    )


def test_keep_prunes_after_the_push(
    model: Artifact, make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    for index in range(4):
        pushed = make_artifact(standard_artifacts.PushedModel, f"pushed{index}")
        run(tmp_path / "serving", {"model": [model]}, pushed, {"keep": 2})
    assert sorted(path.name for path in (tmp_path / "serving").iterdir()) == ["1002", "1003"]


@pytest.mark.parametrize("keep", [0, -1, 1.5, True, "2"])
def test_keep_must_be_a_whole_number_above_zero(keep: Any) -> None:
    with pytest.raises(ValueError, match=f"keep={keep!r}"):
        executor.parse_keep({"keep": keep})


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"takes 'keep' only\. Received: kep"):
        executor.parse_keep({"kep": 3})
