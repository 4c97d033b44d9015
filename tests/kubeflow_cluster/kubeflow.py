"""Kubeflow Pipelines, by the project's own command line and kfp's client."""

import json
import time
import warnings

ENDED = ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELED")
RUN_SECS = 3600  # longest time that a run is waited for
_POLL_SECS = 2


class Kubeflow:
    """The server.

    Args:
      target: The tests' target.
      is_multi_user: True if runs belong to a user's namespace.
      command: Function that runs the project's command line.
    """

    def __init__(self, target, is_multi_user, command):
        self._command = command
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kfp warns of its versions
            import kfp

            self._namespace = target.namespace if is_multi_user else None
            self._client = kfp.Client(
                host=target.host, namespace=self._namespace or "kubeflow", existing_token=target.token
            )
        self._options = ["--kubeflow", target.host]
        if is_multi_user:
            self._options += ["--namespace", target.namespace]
        if target.token_file:
            self._options += ["--token-file", target.token_file]

    def command(self, *arguments):
        """Runs a command with the options of the server; its exit code, and the JSON that it prints last."""
        done = self._command(*arguments, *self._options)
        print(done.stdout)
        lines = done.stdout.splitlines()
        return done.returncode, json.loads(lines[-1]) if lines and lines[-1][0] in "{[" else None

    def state(self, run_id):
        return self._client.get_run(run_id).state

    def wait(self, run_id):
        """Waits for a run to end, and returns its state."""
        return until(lambda: state if (state := self.state(run_id)) in ENDED else None, RUN_SECS)

    def retry(self, run_id):
        """Asks for what *Retry* in Kubeflow's pages does, and waits until the run continues."""
        from kfp_server_api import RunServiceApi

        RunServiceApi(self._client._run_api.api_client).run_service_retry_run(run_id)
        until(lambda: self.state(run_id) not in ENDED, 120)

    def terminate(self, run_id):
        self._client.terminate_run(run_id)

    def runs_of(self, recurring_run_id, experiment_id):
        """Returns the ids of the runs that a recurring run has started."""
        listed = self._client.list_runs(
            page_size=100, sort_by="created_at desc", experiment_id=experiment_id, namespace=self._namespace
        )
        return [run.run_id for run in listed.runs or () if run.recurring_run_id == recurring_run_id]


def until(find, timeout_secs):
    """Returns the result of a function as soon as it is true."""
    deadline = time.monotonic() + timeout_secs
    while not (result := find()):
        assert time.monotonic() < deadline, f"not within {timeout_secs} s"
        time.sleep(_POLL_SECS)
    return result
