import pytest

from pipelines.config import load_config
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.progress import PlainDisplay, Progress
from pipelines.run import RunRequest, read_runs, run
from pipelines.run_lock import locked
from pipelines.run_record import RunRecord, RunRecords


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("x,y\n" + "".join(f"{number}.5,{number % 2}\n" for number in range(40)))
    return file


@pytest.fixture
def killed(data, tmp_path):
    """The record that a killed run leaves."""
    record = RunRecord(
        run_id="20260102-030405",
        name="data",
        status="running",
        started="2026-01-02T03:04:05+00:00",
        config=load_config(data=str(data), label="y").model_dump(mode="json"),
        data_fingerprint=profile_csv([data]).fingerprint,
        log="run.log",
        code_fingerprint="of other code",
    )
    RunRecords(tmp_path / "root").write(record)
    return record


def resume(data, tmp_path, *settings):
    """Asks for what must be refused before anything is captured or started."""
    import io

    request = RunRequest(
        root=tmp_path / "root", data=str(data), label="y", settings=settings, resume=True
    )
    return run(request, Progress(PlainDisplay(io.StringIO())), capture=None)


def test_a_killed_run_is_listed_as_interrupted_unless_it_goes_on(killed, tmp_path):
    root = tmp_path / "root"
    assert [record.status for record in read_runs(root)] == ["interrupted"]
    with locked(root):
        assert [record.status for record in read_runs(root)] == ["running"]


def test_resume_refuses_other_settings(killed, data, tmp_path):
    with pytest.raises(BadInputError, match=r"started with trainer\.seed = 1; received 3\."):
        resume(data, tmp_path, "trainer.seed=3")
    with pytest.raises(BadInputError, match=r"trainer\.custom_config\.a = None; received 1\."):
        resume(data, tmp_path, "trainer.custom_config.a=1")


def test_resume_refuses_other_data(killed, data, tmp_path):
    data.write_text(data.read_text().replace("1.5", "2.5"))
    with pytest.raises(BadInputError, match="have changed since run 20260102-030405 started"):
        resume(data, tmp_path)


def test_resume_refuses_other_code(killed, data, tmp_path):
    # Transform of that run may have finished: it would keep what the old preprocessing_fn made.
    with pytest.raises(BadInputError, match="code of the generic model has changed since run 2026"):
        resume(data, tmp_path)


def test_a_root_that_is_a_file(data, tmp_path):
    (tmp_path / "root").write_text("")
    with pytest.raises(BadInputError, match="root is not a folder that can be written to"):
        resume(data, tmp_path)


def test_a_root_that_would_be_read_as_a_pattern(data, tmp_path):
    with pytest.raises(BadInputError, match=r"TFX would take '\[' for a file pattern"):
        run(RunRequest(root=tmp_path / "root[1]"), progress=None, capture=None)
    assert not (tmp_path / "root[1]").exists()
