"""Beam's own runner, with workers in other processes, which can import the same modules as this process."""

import os
import shlex
import sys
from collections.abc import Iterable
from typing import Any

from apache_beam.options.pipeline_options import SetupOptions
from apache_beam.portability import python_urns
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

_WORKER = (
    "import sys, {modules}; from apache_beam.runners.worker import sdk_worker_main; "
    "sdk_worker_main.main(sys.argv)"
)


class ProcessesRunner(FnApiRunner):
    """Runs a pipeline in worker processes: `--direct_running_mode=multi_processing`.

    Source: Beam 2.77's FnApiRunner. Its workers do not get the pipeline's options, such as `--beam_plugins`,
    and find neither the folders that this process has added to its path nor TFDV's stand-in module. Here
    they do.
    """

    def run_via_runner_api(self, pipeline_proto: Any, options: Any) -> Any:
        """Runs a pipeline whose workers are started by `worker_command`."""
        for environment in pipeline_proto.components.environments.values():
            if environment.urn == python_urns.SUBPROCESS_SDK:
                plugins = options.view_as(SetupOptions).beam_plugins or ()
                environment.payload = worker_command(plugins).encode()
        return super().run_via_runner_api(pipeline_proto, options)


def worker_command(modules: Iterable[str] = ()) -> str:
    """Returns the shell command that starts a worker, which imports modules first."""
    folders = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    # Safe path: the working directory keeps its place in the list, and hides none of our packages.
    variables = f"PYTHONSAFEPATH=1 PYTHONPATH={shlex.quote(folders)}"
    worker = _WORKER.format(modules=", ".join(dict.fromkeys(("components", *modules))))
    return f"{variables} exec {shlex.quote(sys.executable)} -c {shlex.quote(worker)}"
