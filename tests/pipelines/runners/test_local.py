from pipelines.runners.local import LocalRunner


class RecordingLauncher:
    components = ("b", "a", "c")

    def __init__(self):
        self.events = []

    def run(self, component):
        self.events += [f"{component} starts", f"{component} ends"]


def test_components_run_one_at_a_time_in_the_launchers_order():
    launcher = RecordingLauncher()
    LocalRunner().run(launcher)
    assert launcher.events == [
        "b starts", "b ends", "a starts", "a ends", "c starts", "c ends",
    ]  # fmt: skip
