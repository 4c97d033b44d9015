"""A Flink cluster of two task managers for the tests in this folder: `make test-flink`."""

import subprocess
import sys
from pathlib import Path

import pytest

import components  # noqa: F401  - makes TFDV importable for every test in this folder
from scripts.flink.cluster import FlinkCluster

PROJECT = Path(__file__).parents[2]
FLINK = PROJECT / ".flink"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.flink)


@pytest.fixture(scope="session")
def flink(tmp_path_factory):
    """A cluster with two slots; a missing part of it is an error."""
    setup = PROJECT / "scripts" / "flink" / "setup.sh"
    subprocess.run([setup, sys.executable, FLINK], check=True, timeout=900)
    with FlinkCluster(FLINK, tmp_path_factory.mktemp("flink")) as cluster:
        cluster.add_task_manager()
        cluster.add_task_manager()
        cluster.wait_for_slots(2)
        yield cluster
