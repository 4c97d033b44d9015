"""Beam's Spark job server for the tests in this folder: `make test-spark`."""

import subprocess
from pathlib import Path

import pytest

import components  # noqa: F401  - makes TFDV importable for every test in this folder

PROJECT = Path(__file__).parents[2]
SPARK = PROJECT / ".spark"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark():
    """The jar of the job server, which has Spark in it; a missing part is an error."""
    subprocess.run([PROJECT / "scripts" / "spark" / "setup.sh", SPARK], check=True, timeout=900)
    return SPARK / "job-server.jar"
