import threading

from pipelines.steps.running import make_step
from pipelines.steps.step_folders import StepFolders


def test_steps_that_other_processes_finish_are_numbered_with_those_of_this_one(team):
    here, there = (StepFolders(team.root.artifacts) for _ in range(2))
    own, others = team.plan("run-1"), team.plan("run-2", text="b")
    for folders, plan, step in ((here, own, 0), (there, others, 0), (here, own, 1)):
        planned = plan.steps[step]
        make_step(planned, plan.executors[planned.component], folders, "run-1")
    assert [step.number for step in here.all_finished()] == [1, 2, 3]


def test_who_waits_for_a_step_finds_its_lock_file_removed(team, monkeypatch):
    plan = team.plan().steps[0]
    has_file, errors = threading.Event(), []

    def wait():
        try:
            with StepFolders(team.root.artifacts).locked(plan):
                pass
        except OSError as error:
            errors.append(error)

    def sleep(secs):
        has_file.set()

    monkeypatch.setattr("pipelines.root.lock.time.sleep", sleep)
    waiting = threading.Thread(target=wait)
    with StepFolders(team.root.artifacts).locked(plan):
        waiting.start()
        assert has_file.wait(60)
    waiting.join()
    assert errors == []
