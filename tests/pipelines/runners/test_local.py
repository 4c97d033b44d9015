from pipelines.runners.local import LocalRunner

from components.serving_check import model_process
from components.serving_check.component import ServingCheck


class RecordingLauncher:
    components = ("b", "a", "c")

    def __init__(self):
        self.events = []

    def run(self, component):
        self.events += [f"{component} starts", f"{component} ends"]

    def artifact(self, channel):
        return f"artifact of {channel}"


def test_components_run_one_at_a_time_in_the_launchers_order():
    launcher = RecordingLauncher()
    LocalRunner().run(launcher)
    assert launcher.events == [
        "b starts", "b ends", "a starts", "a ends", "c starts", "c ends",
    ]  # fmt: skip


def test_the_process_of_the_serving_check_starts_one_component_early(monkeypatch):
    launcher = RecordingLauncher()
    serving_check = ServingCheck.__new__(ServingCheck)
    monkeypatch.setattr(ServingCheck, "__repr__", lambda self: "check")
    monkeypatch.setattr(ServingCheck, "inputs", {"model": "the model"})
    launcher.components = ("a", "b", serving_check, "c")
    monkeypatch.setattr(
        model_process, "prepare", lambda model: launcher.events.append(f"prepared for {model}")
    )
    monkeypatch.setattr(model_process, "discard", lambda: launcher.events.append("discarded"))
    LocalRunner().run(launcher)
    assert launcher.events == [
        "a starts", "a ends", "prepared for artifact of the model", "b starts", "b ends",
        "check starts", "check ends", "c starts", "c ends", "discarded",
    ]  # fmt: skip


def test_a_serving_check_right_after_the_trainer_starts_its_own_process(monkeypatch):
    class LauncherWithoutModel(RecordingLauncher):
        def artifact(self, channel):
            raise LookupError(f"There is no artifact yet in {channel}.")

    launcher = LauncherWithoutModel()
    serving_check = ServingCheck.__new__(ServingCheck)
    monkeypatch.setattr(ServingCheck, "__repr__", lambda self: "check")
    monkeypatch.setattr(ServingCheck, "inputs", {"model": "the model"})
    launcher.components = ("trainer", serving_check)
    LocalRunner().run(launcher)
    assert launcher.events == ["trainer starts", "trainer ends", "check starts", "check ends"]
