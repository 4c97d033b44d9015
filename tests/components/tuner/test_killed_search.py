"""A search that is killed goes on where it was, and ends like one that was not killed."""

import multiprocessing
import signal
import time
from pathlib import Path

import pytest

from components.tuner.search_space import Range, SearchSpace
from components.tuner.settings import TunerSettings
from components.tuner.study import MAX_ATTEMPTS, Study
from tests.components.tuner.conftest import search_of

SPACE = SearchSpace((Range("learning_rate", 1e-4, 0.2, log=True),))
SETTINGS = TunerSettings(SPACE, trials=4, metric="loss", pruner="none")


def killed(tune, settings, config):
    """Searches in another process, and returns its exit code."""
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=tune, args=(settings,), kwargs={"custom_config": config})
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.more
def test_a_killed_search_goes_on_in_its_trial_from_its_checkpoint(tune, tmp_path):
    log = tmp_path / "log"
    kill = {"trial": 2, "step": 25, "mark": str(tmp_path / "killed")}
    config = {"log": str(log), "kill": kill}
    assert killed(tune, SETTINGS, config) == -signal.SIGKILL
    (folder,) = (tmp_path / "Tuner" / "best_hyperparameters" / "unfinished").iterdir()
    checkpoint = folder / "trials" / "2" / "0" / "Format-Serving" / "model.ckpt-20.index"
    assert checkpoint.exists()
    _, results = tune(SETTINGS, custom_config=config)
    assert not folder.exists()
    trials = search_of(results)["trials"]
    begun = [line.split()[0] for line in log.read_text().splitlines()]
    assert begun == ["0", "1", "2", "2", "3"]  # no other trial ran twice
    assert [one["attempts"] for one in trials] == [1, 1, 2, 1]
    assert [e["step"] for e in trials[2]["evaluations"]] == [10, 20, 30, 40]

    other = {**config, "log": str(tmp_path / "other log")}  # the mark is there: nothing kills it
    _, whole = tune(SETTINGS, custom_config=other, run_id="run-2")
    expected = search_of(whole)["trials"]
    assert [one["values"] for one in trials] == [one["values"] for one in expected]
    assert [one["value"] for one in trials] == pytest.approx([one["value"] for one in expected])


def test_a_trial_in_which_the_process_was_killed_again_and_again_fails(tmp_path):
    for attempt in range(MAX_ATTEMPTS):
        trial = Study(tmp_path, SETTINGS).next_trial()
        assert trial.number == 0, attempt
    study = Study(tmp_path, SETTINGS)
    assert study.next_trial().number == 1
    first = study.results()[0]
    assert (first.state, first.reason) == ("failed", "its process was killed 3 times")


def test_a_search_goes_on_in_the_fold_in_which_it_was_killed(tmp_path):
    settings = TunerSettings(SPACE, trials=1, folds=3, metric="loss")
    for fold, value in ((0, 0.5), (1, 0.7)):
        trial = Study(tmp_path, settings).next_trial()
        assert trial.fold == fold
        trial.report({"loss": 9.0}, 10)
        trial.report({"loss": value}, 20)
        if fold == 0:
            trial.finish_fold(20)
    study = Study(tmp_path, settings)
    trial = study.next_trial()
    assert trial.fold == 1
    trial.finish_fold(20)
    trial.report({"loss": 0.9}, 20)  # the same step, of another fold
    trial.finish_fold(20)
    trial.finish()
    (result,) = study.results()
    assert (result.folds, result.value) == ((0.5, 0.7, 0.9), pytest.approx(0.7))
    steps = [(one.fold, one.step) for one in result.evaluations]
    assert steps == [(0, 10), (0, 20), (1, 10), (1, 20), (2, 20)]


def test_half_a_line_of_the_journal_is_dropped(tmp_path):
    trial = Study(tmp_path, SETTINGS).next_trial()
    trial.report({"loss": 0.5}, 10)
    journal = tmp_path / "study.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code":7,"worker')
    again = Study(tmp_path, SETTINGS).next_trial()
    assert (again.number, list(again.evaluations)) == (0, [(0, 10)])
    again.finish_fold(10)
    again.finish()
    assert Study(tmp_path, SETTINGS).results()[0].value == 0.5
    assert journal.read_bytes().startswith(whole)


@pytest.mark.more
def test_trials_beside_each_other_are_as_many_as_asked_for(tune, tmp_path):
    settings = TunerSettings(SPACE, trials=5, parallel=2, metric="loss", pruner="none")
    function = "tests.components.tuner.line_module.run_fn"
    best, results = tune(settings, function, "run_fn")
    search = search_of(results)
    assert [one["state"] for one in search["trials"]] == ["finished"] * 5
    assert (best / "best_hyperparameters.txt").exists()


@pytest.mark.more
def test_trials_in_processes_of_their_own_end_with_the_search(tune, tmp_path):
    settings = TunerSettings(SPACE, trials=4, parallel=2, metric="loss")
    (tmp_path / "pids").mkdir()
    process = multiprocessing.get_context("spawn").Process(
        target=tune,
        args=(settings, "tests.components.tuner.line_module.run_fn", "run_fn"),
        kwargs={"custom_config": {"pids": str(tmp_path / "pids")}},
    )
    process.start()

    def wait_for(condition):
        end = time.monotonic() + 120
        while not condition([int(path.name) for path in (tmp_path / "pids").iterdir()]):
            assert time.monotonic() < end
            time.sleep(0.1)

    wait_for(lambda pids: len(pids) == 2)  # two trials at a time
    process.kill()
    process.join()
    wait_for(lambda pids: not any(map(is_running, pids)))


def is_running(pid):
    """Returns whether a process runs; a zombie waits only for its parent, here whatever adopted it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.more
def test_an_error_of_a_process_is_the_error_of_the_search(tune):
    settings = TunerSettings(SPACE, trials=3, parallel=2, metric="loss")
    with pytest.raises(ArithmeticError, match="too fast"):
        tune(settings, custom_config={"broken_above": 0.0001})
