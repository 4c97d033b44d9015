"""Starts the tests' stand-in for Kubeflow Pipelines, to try `submit` and `schedule` without a cluster.

It answers the requests of these commands and stores them in memory. It executes nothing.
Usage: python scripts/kubeflow/stand_in.py [--port 8080]
"""

import argparse
import contextlib
import pathlib
import sys
import threading


def main() -> None:
    """Serves until the process is stopped."""
    parser = argparse.ArgumentParser(description="A stand-in for Kubeflow Pipelines.")
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one")
    port = parser.parse_args().port
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
    from tests.pipelines.kubeflow.kfp_server import KfpServer

    try:
        server = KfpServer(port)
    except OSError as error:
        parser.error(f"--port {port}: {error.strerror}. Give another port.")
    with contextlib.closing(server), contextlib.suppress(KeyboardInterrupt):
        print(server.url, flush=True)
        print(
            "This is a stand-in for Kubeflow Pipelines. It executes nothing: every run has SUCCEEDED as soon "
            "as it is requested. Stop it with Ctrl-C.",
            file=sys.stderr,
        )
        threading.Event().wait()


if __name__ == "__main__":
    main()
