import itertools
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


@pytest.fixture
def serving(tmp_path):
    return tmp_path / "serving"


@pytest.fixture
def push(make_artifact, serving):
    """Returns a function that pushes inputs, the values of a dict, and returns the PushedModel."""
    names = (f"pushed{number}" for number in itertools.count())

    def run(config=None, run_id="", executor_class=executor.Executor, **inputs):
        pushed = make_artifact(standard_artifacts.PushedModel, next(names))
        destination = PushDestination(filesystem=PushDestination.Filesystem(base_directory=str(serving)))
        properties = {"push_destination": proto_utils.proto_to_json(destination)}
        executor_class(executor.Executor.Context(pipeline_run_id=run_id), clock=lambda: 1000.0).Do(
            {name: [artifact] for name, artifact in inputs.items()},
            {"pushed_model": [pushed]},
            {**properties, "custom_config": json_utils.dumps(config)},
        )
        return pushed

    return run


def text(pushed, name):
    return pushed.get_string_custom_property(name)


def is_pushed(pushed):
    return pushed.get_int_custom_property("pushed")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_blessed_model_is_pushed(model, make_artifact, serving, push):
    blessing = make_artifact(standard_artifacts.ModelBlessing, blessed=1)
    pushed = push(model=model, model_blessing=blessing)
    assert (serving / "1000" / "saved_model.pb").read_text() == "graph"
    assert is_pushed(pushed)
    assert text(pushed, "pushed_version") == "1000"
    assert text(pushed, "pushed_destination") == str(serving / "1000")
    assert (Path(pushed.uri) / "saved_model.pb").read_text() == "graph"


def test_the_newest_export_of_an_exporter_is_what_is_pushed(make_artifact, serving, push):
    model = make_artifact(standard_artifacts.Model)
    for timestamp in ("1600000000", "1600000060"):
        export = Path(model.uri) / "Format-Serving" / "export" / "taxi" / timestamp
        export.mkdir(parents=True)
        (export / "saved_model.pb").write_text(timestamp)
    push(model=model, model_blessing=make_artifact(standard_artifacts.ModelBlessing, blessed=1))
    assert (serving / "1000" / "saved_model.pb").read_text() == "1600000060"


@pytest.mark.parametrize(
    ("has_model", "blessing", "infra_blessing", "reason"),
    [
        (True, {"blessing_message": "too low"}, None, "Evaluator did not bless the model: too low"),
        (True, {"blessed": 1}, {}, "InfraValidator did not bless the model."),
        (False, None, {}, "InfraValidator did not bless the model."),
    ],
)
def test_a_model_that_is_not_blessed_is_not_pushed_and_the_reason_is_kept(
    model, make_artifact, serving, push, caplog, has_model, blessing, infra_blessing, reason
):
    inputs = {"model": model} if has_model else {}
    if blessing is not None:
        blessing = {"blessed": 0, **blessing}
        inputs["model_blessing"] = make_artifact(standard_artifacts.ModelBlessing, **blessing)
    if infra_blessing is not None:
        inputs["infra_blessing"] = make_artifact(standard_artifacts.InfraBlessing, blessed=0)
    pushed = push(**inputs)
    assert not serving.exists()
    assert not is_pushed(pushed)
    assert text(pushed, "not_pushed_reason") == f"the {reason}"
    assert f"Nothing is pushed: the {reason}" in caplog.text


@pytest.mark.parametrize("has_own", [False, True])
def test_warm_up_requests_of_a_serving_check_are_in_the_version_unless_the_model_has_its_own(
    model, make_artifact, serving, push, has_own
):
    blessing = make_artifact(standard_artifacts.InfraBlessing, blessed=1)
    file, trained = Path("assets.extra") / "tf_serving_warmup_requests", Path(model.uri) / "Format-Serving"
    for folder, content in ((Path(blessing.uri), "requests"), *([(trained, "own")] if has_own else [])):
        (folder / "assets.extra").mkdir()
        (folder / file).write_text(content)
    push(model=model, infra_blessing=blessing)
    assert (serving / "1000" / file).read_text() == ("own" if has_own else "requests")
    assert (serving / "1000" / "assets.extra" / "push.json").is_file()
    assert (trained / "assets.extra").exists() == has_own


def test_keep_prunes_after_the_push_and_a_version_is_above_one_that_was_withdrawn(model, serving, push):
    for _ in range(4):
        push({"keep": 2}, model=model)
    assert names(serving) == ["1002", "1003"]
    assert text(push({"newer_than": 2000}, model=model), "pushed_version") == "2001"


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
def test_one_push_is_made_once(model, serving, push, tmp_path, run_id, taken_over, other_model, versions):
    push(run_id="run-1" if run_id else "", model=model)
    if other_model:
        model.uri = str(Path(model.uri).rename(tmp_path / "other_model"))
    second = push({"taken_over": taken_over}, run_id, model=model)
    assert names(serving) == versions
    assert is_pushed(second)
    assert text(second, "pushed_version") == versions[-1]
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
    model, serving, push, tmp_path, second, config, reason, is_withdrawn
):
    withdrawn = tmp_path / "withdrawn"
    push({"model_fingerprint": "f"}, "run-1", model=model)
    if is_withdrawn:
        withdrawn.mkdir()
        (serving / "1000").rename(withdrawn / "1000")
        reason = reason and "which was withdrawn"
    if second:
        model.uri = str(Path(model.uri).rename(tmp_path / second["uri"]))
    settings = {"skip_unchanged": True, "withdrawn": str(withdrawn), "newer_than": 1000, **config}
    again = push(settings, "run-2", model=model)
    assert is_pushed(again) == int(reason is None)
    kept = [] if is_withdrawn else ["1000"]
    if reason is None:
        assert names(serving) == [*kept, "1001"]
        return
    assert names(serving) == kept
    assert text(again, "unchanged_version") == "1000"
    assert text(again, "not_pushed_reason").endswith(reason)


def test_an_older_version_that_serves_no_more_is_pushed_again(model, push, tmp_path):
    for number, fingerprint in enumerate("fgf"):
        model.uri = str(Path(model.uri).rename(tmp_path / f"model {number}"))
        settings = {"skip_unchanged": True, "model_fingerprint": fingerprint}
        pushed = push(settings, f"run-{number}", model=model)
    assert text(pushed, "pushed_version") == "1002"


def test_a_push_that_was_made_before_is_not_taken_for_served_when_another_is(model, push):
    *_, last = (push(run_id=run_id, model=model) for run_id in ("run-1", "run-2", "run-1"))
    assert text(last, "pushed_version") == "1002"


@pytest.mark.parametrize("infra_blessed", [1, 0])
def test_a_held_model_says_what_its_push_needs(model, make_artifact, serving, push, infra_blessed):
    held = make_artifact(standard_artifacts.ModelBlessing, blessed=0, held=1, blessing_message="the labels")
    infra = make_artifact(standard_artifacts.InfraBlessing, blessed=infra_blessed, blessing_message="slow")
    warmup = Path(infra.uri) / "assets.extra" / "tf_serving_warmup_requests"
    warmup.parent.mkdir()
    warmup.write_text("requests")
    pushed = push({"model_fingerprint": "f"}, model=model, model_blessing=held, infra_blessing=infra)
    assert not serving.exists()
    assert not is_pushed(pushed)
    if not infra_blessed:
        assert text(pushed, "not_pushed_reason") == "the ServingCheck did not bless the model: slow"
        assert text(pushed, "held_model") == ""
        return
    assert text(pushed, "not_pushed_reason") == "the Evaluator holds the model: the labels"
    paths = {"model_uri": model.uri, "saved_model": f"{model.uri}/Format-Serving", "warmup": str(warmup)}
    assert json.loads(text(pushed, "held_model")) == {**paths, "fingerprint": "f"}


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
    assert is_pushed(pushed) == blessed
    expected = destination and f"{destination}{model.uri}/Format-Serving"
    assert (text(pushed, "pushed_destination") or None) == expected
    assert text(pushed, "pushed_version") == ("7" if blessed else "")


def test_the_base_directory_may_come_from_a_runtime_parameter(model, make_artifact, serving):
    destination = {
        "push_destination": '{"filesystem": {"base_directory": ""}}',
        "base_directory": str(serving),
    }
    outputs = {"pushed_model": [make_artifact(standard_artifacts.PushedModel)]}
    executor.Executor(clock=lambda: 1000.0).Do({"model": [model]}, outputs, destination)
    assert (serving / "1000" / "saved_model.pb").is_file()


class NotifyingExecutor(executor.Executor):
    def Do(self, input_dict, output_dict, exec_properties):
        super().Do(input_dict, output_dict, exec_properties)
        channel = json_utils.loads(exec_properties["custom_config"])["channel"]
        output_dict["pushed_model"][0].set_string_custom_property("told", channel)


class RefusingExecutor(executor.Executor):
    def CheckBlessing(self, input_dict):
        return super().CheckBlessing(input_dict) and False


def test_a_subclass_has_settings_of_its_own_and_its_refusal_counts(model, serving, push):
    for _ in range(2):
        pushed = push({"channel": "#models", "keep": 1}, executor_class=NotifyingExecutor, model=model)
    assert text(pushed, "told") == "#models"
    assert names(serving) == ["1001"]
    pushed = push(executor_class=RefusingExecutor, model=model)
    assert text(pushed, "not_pushed_reason") == "RefusingExecutor.CheckBlessing refused the model"
    assert names(serving) == ["1001"]


@pytest.mark.parametrize("has_model", [1, 0])
def test_without_a_model_that_of_the_infra_blessing_is_pushed(make_artifact, serving, push, has_model):
    blessing = make_artifact(standard_artifacts.InfraBlessing, blessed=1, has_model=has_model)
    stamped = Path(path_utils.stamped_model_path(blessing.uri))
    stamped.mkdir(parents=True)
    (stamped / "saved_model.pb").write_text("with warm-up requests")
    if not has_model:
        with pytest.raises(FileNotFoundError, match=r"has no model: give the Pusher model="):
            push(infra_blessing=blessing)
        return
    push(infra_blessing=blessing)
    assert (serving / "1000" / "saved_model.pb").read_text() == "with warm-up requests"
