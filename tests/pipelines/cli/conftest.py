import contextlib

import pytest

from tests.pipelines.kubeflow.kfp_server import KfpServer


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of Kubeflow on the loopback."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with contextlib.closing(KfpServer()) as started:
        yield started
