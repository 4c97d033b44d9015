import json
from pathlib import Path

import pytest
from tfx.proto.pusher_pb2 import PushDestination
from tfx.types import standard_artifacts
from tfx.utils import json_utils, path_utils, proto_utils

from components.pusher import executor


@pytest.fixture
def model(make_artifact):
    artifact = make_artifact(standard_artifacts.Model)
    serving = Path(artifact.uri) / "Format-Serving"
    serving.mkdir()
    (serving / "saved_model.pb").write_text("graph")
    return artifact


def run(
    base,
    inputs,
    pushed,
    config=None,
    run_id="",
    executor_class=executor.Executor,
):
    destination = PushDestination(filesystem=PushDestination.Filesystem(base_directory=str(base)))
    context = executor.Executor.Context(pipeline_run_id=run_id)
    executor_class(context, clock=lambda: 1000.0).Do(
        inputs,
        {"pushed_model": [pushed]},
        {
            "push_destination": proto_utils.proto_to_json(destination),
            "custom_config": json_utils.dumps(config),
        },
    )


def test_a_blessed_model_is_pushed(model, make_artifact, tmp_path):
    blessing = make_artifact(standard_artifacts.ModelBlessing, blessed=1)
    pushed = make_artifact(standard_artifacts.PushedModel)
    run(tmp_path / "serving", {"model": [model], "model_blessing": [blessing]}, pushed)
    assert (tmp_path / "serving" / "1000" / "saved_model.pb").read_text() == "graph"
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_version") == "1000"
    assert pushed.get_string_custom_property("pushed_destination") == str(tmp_path / "serving" / "1000")
    assert (Path(pushed.uri) / "saved_model.pb").read_text() == "graph"


def test_the_newest_export_of_an_exporter_is_what_is_pushed(make_artifact, tmp_path):
    model = make_artifact(standard_artifacts.Model)
    for timestamp in ("1600000000", "1600000060"):
        export = Path(model.uri) / "Format-Serving" / "export" / "taxi" / timestamp
        export.mkdir(parents=True)
        (export / "saved_model.pb").write_text(timestamp)
    blessing = make_artifact(standard_artifacts.ModelBlessing, blessed=1)
    pushed = make_artifact(standard_artifacts.PushedModel)
    run(tmp_path / "serving", {"model": [model], "model_blessing": [blessing]}, pushed)
    assert (tmp_path / "serving" / "1000" / "saved_model.pb").read_text() == "1600000060"


def test_a_model_that_is_not_blessed_is_not_pushed_and_the_reason_is_kept(
    model, make_artifact, tmp_path, caplog
):
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


def test_an_infra_blessing_counts_too(model, make_artifact, tmp_path):
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


def test_warm_up_requests_of_a_serving_check_become_part_of_the_version(model, make_artifact, tmp_path):
    blessing = make_artifact(standard_artifacts.InfraBlessing, blessed=1)
    file = Path("assets.extra") / "tf_serving_warmup_requests"
    (Path(blessing.uri) / "assets.extra").mkdir()
    (Path(blessing.uri) / file).write_text("requests")
    inputs = {"model": [model], "infra_blessing": [blessing]}
    run(tmp_path / "serving", inputs, make_artifact(standard_artifacts.PushedModel))
    version = tmp_path / "serving" / "1000"
    assert (version / file).read_text() == "requests"
    assert (version / "assets.extra" / "push.json").is_file()
    assert not (Path(model.uri) / "Format-Serving" / "assets.extra").exists()


def test_warm_up_requests_of_the_model_itself_stay(model, make_artifact, tmp_path):
    blessing = make_artifact(standard_artifacts.InfraBlessing, blessed=1)
    file = Path("assets.extra") / "tf_serving_warmup_requests"
    for folder, content in ((Path(blessing.uri), "ours"), (Path(model.uri) / "Format-Serving", "own")):
        (folder / "assets.extra").mkdir()
        (folder / file).write_text(content)
    inputs = {"model": [model], "infra_blessing": [blessing]}
    run(tmp_path / "serving", inputs, make_artifact(standard_artifacts.PushedModel))
    assert (tmp_path / "serving" / "1000" / file).read_text() == "own"


def test_keep_prunes_after_the_push(model, make_artifact, tmp_path):
    for index in range(4):
        pushed = make_artifact(standard_artifacts.PushedModel, f"pushed{index}")
        run(tmp_path / "serving", {"model": [model]}, pushed, {"keep": 2})
    assert sorted(path.name for path in (tmp_path / "serving").iterdir()) == ["1002", "1003"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        *(({"keep": keep}, f"keep={keep!r}") for keep in (0, -1, 1.5, True, "2")),
        *(({"newer_than": number}, f"newer_than={number!r}") for number in (-1, 1.5, "2")),
        ({"taken_over": "run-1"}, "taken_over='run-1'"),
        ({"kep": 3}, r"takes 'keep', 'newer_than', 'taken_over', .* only\. Received: kep"),
        ({"skip_unchanged": "yes"}, "skip_unchanged='yes'"),
        ({"model_fingerprint": 3}, "model_fingerprint=3"),
        ({"withdrawn": 3}, "withdrawn=3"),
    ],
)
def test_settings_that_make_no_sense_are_refused(config, message):
    with pytest.raises(ValueError, match=message):
        executor.PushSettings.parse(config)


def test_a_setting_that_is_none_is_not_given():
    assert executor.PushSettings.parse({"keep": None}) == executor.PushSettings()
    assert executor.PushSettings.parse(None) == executor.PushSettings()


def test_a_version_is_above_one_that_was_taken_out_of_service(model, make_artifact, tmp_path):
    pushed = make_artifact(standard_artifacts.PushedModel)
    run(tmp_path / "serving", {"model": [model]}, pushed, {"newer_than": 2000})
    assert pushed.get_string_custom_property("pushed_version") == "2001"


@pytest.mark.parametrize(
    ("run_id", "taken_over", "other_model", "versions"),
    [
        ("run-1", [], False, ["1000"]),  # the same run, taken up again
        ("run-2", ["run-0", "run-1"], False, ["1000"]),
        ("run-2", ["run-0"], False, ["1000", "1001"]),
        ("run-2", ["run-1"], True, ["1000", "1001"]),
        ("", [], False, ["1000", "1001"]),
    ],
)
def test_the_same_push_is_made_once(
    model,
    make_artifact,
    tmp_path,
    run_id,
    taken_over,
    other_model,
    versions,
):
    first, second = (make_artifact(standard_artifacts.PushedModel, name) for name in "ab")
    run(tmp_path / "serving", {"model": [model]}, first, run_id="run-1" if run_id else "")
    if other_model:
        model.uri = str(Path(model.uri).rename(tmp_path / "other_model"))
    config = {"taken_over": taken_over}
    run(tmp_path / "serving", {"model": [model]}, second, config, run_id=run_id)
    assert sorted(path.name for path in (tmp_path / "serving").iterdir()) == versions
    assert second.get_int_custom_property("pushed") == 1
    assert second.get_string_custom_property("pushed_version") == versions[-1]
    assert (Path(second.uri) / "saved_model.pb").read_text() == "graph"


@pytest.mark.parametrize(
    ("second", "config", "reason"),
    [
        ({}, {}, "which is already live"),  # the same artifact, as from the cache
        ({"uri": "b"}, {"model_fingerprint": "f"}, "which is already live"),
        ({"uri": "b"}, {"model_fingerprint": "g"}, None),
        ({"uri": "b"}, {}, None),
        ({}, {"skip_unchanged": False}, None),
    ],
)
@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_a_model_that_serves_or_was_withdrawn_is_not_pushed_again(
    model,
    make_artifact,
    tmp_path,
    second,
    config,
    reason,
    is_withdrawn,
):
    serving, withdrawn = tmp_path / "serving", tmp_path / "withdrawn"
    first, again = (make_artifact(standard_artifacts.PushedModel, name) for name in ("x", "y"))
    run(serving, {"model": [model]}, first, {"model_fingerprint": "f"}, run_id="run-1")
    if is_withdrawn:
        withdrawn.mkdir()
        (serving / "1000").rename(withdrawn / "1000")
        reason = reason and "which was withdrawn"
    if second:
        model.uri = str(Path(model.uri).rename(tmp_path / second["uri"]))
    settings = {"skip_unchanged": True, "withdrawn": str(withdrawn), "newer_than": 1000, **config}
    run(serving, {"model": [model]}, again, settings, run_id="run-2")
    assert again.get_int_custom_property("pushed") == int(reason is None)
    left = sorted(path.name for path in serving.iterdir())
    kept = [] if is_withdrawn else ["1000"]
    if reason is None:
        assert left == [*kept, "1001"]
        return
    assert left == kept
    assert again.get_string_custom_property("unchanged_version") == "1000"
    assert again.get_string_custom_property("not_pushed_reason").endswith(reason)


def test_an_older_version_that_serves_no_more_is_pushed_again(model, make_artifact, tmp_path):
    pushed = [make_artifact(standard_artifacts.PushedModel, name) for name in "abc"]
    for artifact, fingerprint in zip(pushed, "fgf", strict=True):
        model.uri = str(Path(model.uri).rename(tmp_path / f"model {artifact.uri[-1]}"))
        config = {"skip_unchanged": True, "model_fingerprint": fingerprint}
        run(tmp_path / "serving", {"model": [model]}, artifact, config, run_id=artifact.uri)
    assert pushed[2].get_string_custom_property("pushed_version") == "1002"


def test_a_push_that_was_made_before_is_not_taken_for_served_when_another_is(model, make_artifact, tmp_path):
    pushed = [make_artifact(standard_artifacts.PushedModel, name) for name in "abc"]
    for artifact, run_id in zip(pushed, ("run-1", "run-2", "run-1"), strict=True):
        run(tmp_path / "serving", {"model": [model]}, artifact, run_id=run_id)
    assert pushed[2].get_string_custom_property("pushed_version") == "1002"


@pytest.mark.parametrize("infra_blessed", [1, 0])
def test_a_held_model_is_not_pushed_and_says_what_its_push_needs(
    model, make_artifact, tmp_path, infra_blessed
):
    held = make_artifact(standard_artifacts.ModelBlessing, blessed=0, held=1, blessing_message="the labels")
    infra = make_artifact(
        standard_artifacts.InfraBlessing, blessed=infra_blessed, blessing_message="too slow"
    )
    warmup = Path(infra.uri) / "assets.extra" / "tf_serving_warmup_requests"
    warmup.parent.mkdir()
    warmup.write_text("requests")
    pushed = make_artifact(standard_artifacts.PushedModel)
    inputs = {"model": [model], "model_blessing": [held], "infra_blessing": [infra]}
    run(tmp_path / "serving", inputs, pushed, {"model_fingerprint": "f"})
    assert not (tmp_path / "serving").exists()
    assert pushed.get_int_custom_property("pushed") == 0
    reason = pushed.get_string_custom_property("not_pushed_reason")
    found = pushed.get_string_custom_property("held_model")
    if not infra_blessed:
        assert reason == "the ServingCheck did not bless the model: too slow"
        assert found == ""
        return
    assert reason == "the Evaluator holds the model: the labels"
    assert json.loads(found) == {
        "model_uri": model.uri,
        "saved_model": f"{model.uri}/Format-Serving",
        "warmup": str(warmup),
        "fingerprint": "f",
    }


class RefusingExecutor(executor.Executor):
    def CheckBlessing(self, input_dict):
        return super().CheckBlessing(input_dict) and False


class ElsewhereExecutor(executor.Executor):
    """As teams wrote it for a destination of their own."""

    def Do(self, input_dict, output_dict, exec_properties):
        self._log_startup(input_dict, output_dict, exec_properties)
        (pushed,) = output_dict["pushed_model"]
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        self._MarkPushed(pushed, f"elsewhere:{self.GetModelPath(input_dict)}", "7")


@pytest.mark.parametrize(("blessed", "destination"), [(1, "elsewhere:"), (0, None)])
def test_a_subclass_pushes_where_it_wants(model, make_artifact, blessed, destination):
    blessing = make_artifact(standard_artifacts.ModelBlessing, blessed=blessed)
    pushed = make_artifact(standard_artifacts.PushedModel)
    inputs = {"model": [model], "model_blessing": [blessing]}
    ElsewhereExecutor().Do(inputs, {"pushed_model": [pushed]}, {})
    assert pushed.get_int_custom_property("pushed") == blessed
    expected = destination and f"{destination}{model.uri}/Format-Serving"
    assert (pushed.get_string_custom_property("pushed_destination") or None) == expected
    assert pushed.get_string_custom_property("pushed_version") == ("7" if blessed else "")


def test_the_refusal_of_a_subclass_counts(model, make_artifact, tmp_path):
    pushed = make_artifact(standard_artifacts.PushedModel)
    run(tmp_path / "serving", {"model": [model]}, pushed, executor_class=RefusingExecutor)
    reason = pushed.get_string_custom_property("not_pushed_reason")
    assert reason == "RefusingExecutor.CheckBlessing refused the model"
    assert not (tmp_path / "serving").exists()


def test_the_base_directory_may_come_from_a_runtime_parameter(model, make_artifact, tmp_path):
    executor.Executor(clock=lambda: 1000.0).Do(
        {"model": [model]},
        {"pushed_model": [make_artifact(standard_artifacts.PushedModel)]},
        {
            "push_destination": '{"filesystem": {"base_directory": ""}}',
            "base_directory": str(tmp_path / "serving"),
        },
    )
    assert (tmp_path / "serving" / "1000" / "saved_model.pb").is_file()


class NotifyingExecutor(executor.Executor):
    def Do(self, input_dict, output_dict, exec_properties):
        super().Do(input_dict, output_dict, exec_properties)
        channel = json_utils.loads(exec_properties["custom_config"])["channel"]
        output_dict["pushed_model"][0].set_string_custom_property("told", channel)


def test_a_subclass_has_settings_of_its_own(model, make_artifact, tmp_path):
    pushed = [make_artifact(standard_artifacts.PushedModel, name) for name in "ab"]
    for artifact in pushed:
        config = {"channel": "#models", "keep": 1}
        run(tmp_path / "serving", {"model": [model]}, artifact, config, executor_class=NotifyingExecutor)
    assert pushed[1].get_string_custom_property("told") == "#models"
    assert [path.name for path in (tmp_path / "serving").iterdir()] == ["1001"]


def test_a_model_of_an_infra_blessing_that_is_refused_is_not_pushed(make_artifact, tmp_path):
    blessing = make_artifact(standard_artifacts.InfraBlessing, blessed=0)
    pushed = make_artifact(standard_artifacts.PushedModel)
    run(tmp_path / "serving", {"infra_blessing": [blessing]}, pushed)
    assert pushed.get_int_custom_property("pushed") == 0
    reason = pushed.get_string_custom_property("not_pushed_reason")
    assert reason == "the InfraValidator did not bless the model."


@pytest.mark.parametrize("has_model", [1, 0])
def test_without_a_model_that_of_the_infra_blessing_is_pushed(make_artifact, tmp_path, has_model):
    blessing = make_artifact(standard_artifacts.InfraBlessing, blessed=1, has_model=has_model)
    stamped = Path(path_utils.stamped_model_path(blessing.uri))
    stamped.mkdir(parents=True)
    (stamped / "saved_model.pb").write_text("with warm-up requests")
    pushed = make_artifact(standard_artifacts.PushedModel)
    if not has_model:
        with pytest.raises(FileNotFoundError, match=r"has no model: give the Pusher model="):
            run(tmp_path / "serving", {"infra_blessing": [blessing]}, pushed)
        return
    run(tmp_path / "serving", {"infra_blessing": [blessing]}, pushed)
    file = tmp_path / "serving" / "1000" / "saved_model.pb"
    assert file.read_text() == "with warm-up requests"
