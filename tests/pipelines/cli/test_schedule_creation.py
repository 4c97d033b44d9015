import os
from pathlib import Path

import pytest

from pipelines.cli.schedule_creation import CreateRequest, create_local, create_on_kubeflow, switch_local
from pipelines.config.tfx_pipeline import load_any_config
from pipelines.errors import BadInputError
from pipelines.kubeflow.server.recurring import Recurrence
from pipelines.kubeflow.server.submission import Submission
from pipelines.root import Root
from pipelines.scheduling.receivers import Receivers
from pipelines.scheduling.store import ScheduleStore


@pytest.fixture
def config_file(spans, tmp_path):
    file = tmp_path / "trips.toml"
    file.write_text(
        f'name = "trips"\n[data]\npath = "{spans}"\nlabel = "y"\n[notify]\ncommand = "tell"\n'
        '[kubeflow]\nimage = "own:1"\npipeline_root = "minio://artifacts/v2"\nroot = "/mnt/p/root"\n'
        '[[kubeflow.volumes]]\nclaim = "p"\npath = "/mnt/p"\n'
    )
    return file


@pytest.fixture
def request_of(config_file, tmp_path):
    given = {"config": config_file, "root": Root(tmp_path / "root")}
    return lambda **changes: CreateRequest(**{**given, **changes})


@pytest.fixture
def store(tmp_path):
    return ScheduleStore(Root(tmp_path / "root"))


@pytest.fixture
def stored(request_of, store):
    """Returns a function that makes a schedule, and returns it with the configuration of its runs."""

    def make(**changes):
        schedule = store.read(create_local(request_of(**changes), pytest.fail)["name"])
        return schedule, load_any_config(schedule.config_file, schedule.settings)

    return make


def test_data_and_label_make_a_schedule_without_a_configuration(stored, spans, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = {"config": None, "data": os.path.relpath(str(spans), tmp_path), "every": "6h"}
    schedule, config = stored(name="trips", settings=("data.label=y",), label="z", **given)
    assert (schedule.config, schedule.config_file) == (None, None)
    assert schedule.settings == (f'data.path="{spans}"', 'data.label="z"', "data.label=y")
    assert (config.data.path, config.data.label) == (str(spans), "y")
    missing = r"data\.label is missing: give --label COLUMN or a --config"
    with pytest.raises(BadInputError, match=missing):
        stored(**given)


def test_a_linked_configuration_is_read_where_the_link_leads_at_each_run(
    stored, config_file, spans, tmp_path
):
    text = config_file.read_text().replace(str(spans), os.path.relpath(str(spans), tmp_path))
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "trips.toml").write_text(text)
    config_file.unlink()
    config_file.symlink_to("v1/trips.toml")
    schedule, config = stored(every="6h")
    assert config.data.path == str(spans)  # from the folder of the link, as for `run --config`
    (tmp_path / "v2.toml").write_text(text.replace('label = "y"', 'label = "x"'))
    config_file.unlink()
    config_file.symlink_to("v2.toml")
    assert load_any_config(schedule.config_file, schedule.settings).data.label == "x"


@pytest.mark.parametrize("label", ["😀", "a\x7fb", 'a "b"', "1"])
def test_a_label_of_any_characters_is_read_again(stored, tmp_path, label):
    header = label.replace('"', '""')
    (tmp_path / "data.csv").write_text(f'x,"{header}"\n1,2\n', encoding="utf-8")
    _, config = stored(config=None, data=f"{tmp_path}/data.csv", label=label, every="6h", name="trips")
    assert config.data.label == label


def test_data_and_label_override_the_configuration_and_stay_text(stored, config_file, tmp_path):
    data = tmp_path / "1.csv"
    data.write_text("x,1\n2,3\n")
    schedule, config = stored(every="6h", data=str(data), label="1")
    assert schedule.config == str(config_file)
    assert (config.data.path, config.data.label) == (str(data), "1")


@pytest.fixture
def team_file(tmp_path):
    """A configuration of a TFX pipeline; schedules do not load its definition."""
    file = tmp_path / "team.toml"
    file.write_text(
        '[pipeline]\nfile = "team.py"\nfunction = "build"\narguments = { steps = 100, folder = "f" }\n'
        '[notify]\ncommand = "tell"\n'
    )
    return file


def test_a_schedule_of_a_tfx_pipeline(stored, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = {"arg": ("steps=100", "text=a=b"), "param": ("data-root=data",), "every": "6h"}
    pipeline = {"config": None, "pipeline": "my_pipeline.py:build"}
    schedule, config = stored(**pipeline, **given, settings=("retention.runs=5",))
    assert schedule.name == "my_pipeline"
    assert config.pipeline.model_dump() == {
        "file": str(tmp_path / "my_pipeline.py"), "function": "build",
        "arguments": {"steps": "100", "text": "a=b"}, "parameters": {"data-root": "data"},
    }  # fmt: skip
    assert config.retention.runs == 5


def test_a_schedule_of_a_tfx_pipeline_in_a_file(stored, store, team_file, tmp_path):
    given = {"config": team_file, "cron": "0 3 * * *"}
    schedule, config = stored(arg=("steps=200",), **given)
    assert schedule.name == "team"
    assert Receivers.read(store.state("team")).notify.command == "tell"
    found = config.pipeline
    assert (found.file, found.function) == (str(tmp_path / "team.py"), "build")
    assert found.arguments == {"steps": "200", "folder": "f"}
    found = stored(pipeline="/other.py", name="other", **given)[1].pipeline
    assert (found.file, found.function) == ("/other.py", None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"on_new_span": True, "every": None}, "--on-new-span needs a pipeline from a CSV"),
        ({"data": "a.csv"}, "--data is for a pipeline from a CSV"),
        ({"arg": ("steps",)}, "--arg takes name=value"),
        ({"settings": ("pipeline.fil=a",)}, r"pipeline\.fil = 'a'.*Did you mean file\?"),
    ],
)
def test_what_it_refuses_for_a_tfx_pipeline(request_of, store, team_file, changes, message):
    with pytest.raises(BadInputError, match=message):
        create_local(request_of(**{"config": team_file, "every": "6h", **changes}), pytest.fail)
    assert store.names() == []


def test_a_schedule_is_made(request_of, store, config_file, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    options = {"every": "6h", "grace": "10m", "timeout": "2h", "retries": 3}
    given = {"config": Path("trips.toml"), "settings": ("trainer.seed=7",)}
    made = create_local(request_of(**options, **given), pytest.fail)
    schedule = store.read("trips")
    assert made["file"] == str(store.file("trips"))
    assert (made["when"], made["missed"]) == ("every 6h", "latest")
    assert (schedule.config, schedule.working_dir) == (str(config_file), str(tmp_path))
    assert (schedule.every_secs, schedule.grace_secs, schedule.timeout_secs) == (21_600, 600, 7_200)
    assert (schedule.retries, schedule.settings) == (3, ("trainer.seed=7",))
    assert Receivers.read(store.state(schedule.name)).notify.command == "tell"
    assert (schedule.since, schedule.enabled) == (schedule.created, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "exactly one of --cron, --every and --on-new-span"),
        ({"cron": "0 3 * *"}, "cron.*five fields"),
        ({"every": "6", "label": "none"}, "--every takes numbers with their units"),
        ({"every": "6h", "label": "none"}, "no label column 'none'"),
        ({"every": "6h", "grace": "soon"}, "--grace takes"),
        ({"every": "6h", "runner": "kubeflow"}, "--runner takes one of local, beam; for Kubeflow"),
        ({"every": "6h", "runner": "lcoal"}, "Received: 'lcoal'"),
        ({"every": "6h", "timezone": "Mars"}, "no such time zone"),
        ({"on_new_span": True, "missed": "skip"}, "does not apply to on_new_span"),
        ({"on_new_span": True, "settings": ("data.spans=8",)}, "names fixed ones"),
        ({"every": "6h", "arg": ("steps=5",)}, "--arg is for --pipeline"),
        ({"every": "6h", "max_concurrency": 2}, "--max-concurrency is for --kubeflow"),
        ({"every": "6h", "settings": ("trainer.sed=7",)}, "Did you mean"),
        ({"every": "6h", "name": "a/b"}, "name = 'a/b'"),
        ({"every": "9000000d"}, "^--every must be at most 3660d"),  # it is beyond all calendars
        ({"every": "999999999w"}, "^--every must be at most 3660d"),
    ],
)
def test_what_it_refuses(request_of, store, changes, message):
    with pytest.raises(BadInputError, match=message):
        create_local(request_of(**changes), pytest.fail)
    assert not store.folder.exists()


def test_one_of_the_same_name(request_of, store):
    create_local(request_of(every="6h"), pytest.fail)
    with pytest.raises(BadInputError, match=r"already has a schedule 'trips': every 6h.*--replace"):
        create_local(request_of(every="3h"), pytest.fail)
    switch_local("trips", store.root, on=False)
    create_local(request_of(every="3h", replace=True), pytest.fail)
    assert (store.read("trips").every_secs, store.read("trips").enabled) == (10_800, False)
    create_local(request_of(on_new_span=True, replace=True), pytest.fail)
    assert (store.read("trips").every_secs, len(store.read("trips").passed_spans)) == (None, 2)


def test_it_is_switched(request_of, store, monkeypatch):
    create_local(request_of(every="6h"), pytest.fail)
    before = store.read("trips")
    switch_local("trips", store.root, on=True)
    assert store.read("trips") == before
    switch_local("trips", store.root, on=False)
    assert not store.read("trips").enabled
    later = before.since.replace(year=2040)
    monkeypatch.setattr("pipelines.cli.schedule_creation._now", lambda: later)
    switch_local("trips", store.root, on=True)
    assert (store.read("trips").since, store.read("trips").created) == (later, before.created)


class FakeServer:
    def submit(self, text, experiment, parameters, recurrence, account, name, replace):
        self.parameters = parameters
        self.got = (text[:20], recurrence, name, experiment, account, replace)
        return Submission("p", "v", "e", recurring_run_id="r")


def test_spans_that_are_there_when_it_is_made_are_old_but_for_the_newest(request_of, store):
    assert create_local(request_of(on_new_span=True), pytest.fail)["old_spans"] == 2
    passed = sorted(key[-22:] for key in store.read("trips").passed_spans)
    assert passed == ["08-v000000000000000001", "09-v000000000000000001"]
    create_local(request_of(on_new_span=True, replace=True, every=None), pytest.fail)
    assert len(store.read("trips").passed_spans) == 2


def test_receivers_are_not_in_the_file_of_the_schedule(request_of, store):
    create_local(
        request_of(every="6h", settings=("notify.command=tell SECRET", "trainer.seed=7")), pytest.fail
    )
    assert store.read("trips").settings == ("trainer.seed=7",)
    files = [file for file in store.folder.rglob("*") if file.is_file()]
    assert [file.name for file in files if "SECRET" in file.read_text()] == ["notify.json"]
    assert Receivers.read(store.state("trips")).notify.command == "tell SECRET"


def test_a_recurring_run(request_of):
    server = FakeServer()
    warned = []

    def make(**changes):
        return create_on_kubeflow(
            request_of(settings=("data.path=/mnt/p/span-{SPAN}",), **changes), server, warned.append
        )

    made = make(cron="0 3 * * *", missed="catch-up", name="nightly", max_concurrency=2)
    assert [text.split()[0] for text in warned] == ["[notify]"]
    assert made["recurring_run_id"] == "r"
    recurrence = Recurrence(cron="0 0 3 * * *", catches_up=True, max_concurrency=2)
    assert server.got[1:] == (recurrence, "nightly", None, None, False)
    make(every="6h", replace=True, experiment="weekly")
    assert server.got[1:] == (Recurrence(interval_secs=21_600), None, "weekly", None, True)
    assert server.parameters == {}
    make(cron="30 0 3 * * *", param=("train_steps=70",))
    assert server.parameters == {"train_steps": "70"}
    assert server.got[1].cron == "30 0 3 * * *"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "exactly one of --cron and --every"),
        ({"cron": "0 3 * * *", "every": "6h"}, "exactly one of --cron and --every"),
        ({"on_new_span": True}, "--on-new-span needs `schedule run`"),
        ({"every": "6h", "missed": "skip"}, "--missed skip: Kubeflow only supports"),
        ({"every": "6h", "timeout": "2h"}, "--timeout is for a schedule of this machine"),
        ({"cron": "61 3 * * *"}, r'--cron "61 3 \* \* \*": \'61\' is not a valid minute'),
        ({"every": "6h", "param": ("train_step=5",)}, "--param train_step: .* Did you mean train_steps"),
        ({"cron": "0 3 * * *", "timezone": "Europe/Berlin"}, "--timezone: Kubeflow's server"),
    ],
)
def test_what_kubeflow_has_not(request_of, changes, message, monkeypatch):
    def compiled(*given):
        raise AssertionError("nothing is compiled for what is refused anyway")

    monkeypatch.setattr("pipelines.kubeflow.compile.pipeline_file.compile_pipeline", compiled)
    with pytest.raises(BadInputError, match=message):
        create_on_kubeflow(request_of(**changes), FakeServer(), print)


def test_tensorflow_does_not_greet_on_the_way_to_kubeflow(request_of, monkeypatch, capfd):
    def compiled(*given):
        os.write(2, b"I0000 00:00:1764000000.000000    1 port.cc:153] oneDNN custom operations are on.\n")
        os.write(2, b"what matters\n")
        return "compiled"

    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    monkeypatch.setattr("pipelines.kubeflow.compile.pipeline_file.compile_pipeline", compiled)
    create_on_kubeflow(request_of(every="6h"), FakeServer(), lambda text: None)
    assert capfd.readouterr().err == "what matters\n"
