import contextlib
import io
import signal
import threading

import pytest

import components  # noqa: F401  - makes TFDV importable for every test in this folder
from components.interruption import RunInterruptedError, interruption
from pipelines.config.load import load_config
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.data.profile import profile_csv
from pipelines.root import Root
from pipelines.terminal import signals
from pipelines.terminal.progress import PlainDisplay
from tests.pipelines import sum_models
from tests.pipelines.run_records import make_record


@pytest.fixture
def data(tmp_path):
    """A CSV of 40 rows whose label `y` has two classes."""
    file = tmp_path / "data.csv"
    file.write_text("x,y\n" + "".join(f"{number}.5,{number % 2}\n" for number in range(40)))
    return file


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path / "root")


@pytest.fixture
def spans(data, tmp_path):
    """A pattern of three spans, `span-8/v1` to `span-10/v1`, each with the rows of `data`."""
    for number in (8, 9, 10):
        folder = tmp_path / f"span-{number}" / "v1"
        folder.mkdir(parents=True)
        (folder / "data.csv").write_text(data.read_text())
    return str(tmp_path / "span-{SPAN}" / "v{VERSION}")


@pytest.fixture
def killed(data, tmp_path):
    """The record that a killed run leaves in `tmp_path / "root"`."""
    record = make_record(
        name="data",
        status="running",
        config=load_config(data=str(data), label="y").model_dump(mode="json"),
        data_fingerprint=profile_csv([data]).fingerprint,
        log=str(tmp_path / "root" / "logs" / "20260102-030405.log"),
        code_fingerprint="of other code",
    )
    Root(tmp_path / "root").records.write(record)
    return record


@pytest.fixture
def not_begun(killed, tmp_path):
    """The record that the scheduler leaves in the root of `killed`, of a newer run that could not begin."""
    record = make_record(
        "20260102-030406",
        name="nightly",
        status="failed",
        started="2026-01-02T03:04:06+00:00",
        log=str(tmp_path / "root" / "logs" / "never-written.log"),
        reason="data.path: there is no such file",
        scheduled_by="nightly/20260102T030400Z",
        attempt=0,
        number=1,
    )
    Root(tmp_path / "root").records.write(record)
    return record


@pytest.fixture
def of_tfx_pipeline():
    """Returns a function that writes the record of a run of a TFX pipeline, which has pushed version 5."""

    def write(root, run_id="run-5"):
        config = TfxPipelineConfig.model_validate({"pipeline": {"file": "/my_pipeline.py"}})
        record = make_record(
            run_id, name="team", config=config.model_dump(mode="json"), log=str(root / "log"), version="5"
        )
        Root(root).records.write(record)
        return record

    return write


class Clock:
    now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    """A clock that stands still; its time is `now`."""
    return Clock()


@pytest.fixture
def shown():
    """The output shown to the user."""
    return io.StringIO()


@pytest.fixture
def handles_signals(monkeypatch):
    """SIGTERM and SIGINT are handled as in a run; yields a context that one of them has to end."""
    monkeypatch.setattr(signals, "_LOOK_EVERY_SECS", 0.02)
    for attribute in ("reason", "is_held"):  # to be as they were
        monkeypatch.setattr(interruption, attribute, getattr(interruption, attribute))
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signals.raise_at_signals()

    @contextlib.contextmanager
    def ends_by_signal():
        with pytest.raises(RunInterruptedError):  # noqa: PT012
            try:
                yield
            finally:
                signals.ignore_further_signals()  # or it would be raised again: to go on is not to end

    yield ends_by_signal
    signals.ignore_further_signals()
    for thread in threading.enumerate():
        if thread.name == "signals":
            thread.join()  # it may be about to send one, which would end pytest
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.fixture
def display(shown):
    """Prints every line to `shown`."""
    return PlainDisplay(shown, secs_between_activities=0)


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Returns the folder of one of `sum_models` by its name; each is exported once."""
    folders = {}

    def exported(name):
        if name not in folders:
            place = tmp_path_factory.mktemp("exported")
            folders[name] = sum_models.export_by_name(name, place)
        return folders[name]

    return exported


@pytest.fixture
def push(exported, tmp_path):
    """Pushes one of `sum_models` into `tmp_path / "root"` as a version, in one step; returns the root."""

    def push(name, version):
        return sum_models.push(exported(name), tmp_path / "root", version)

    return push
