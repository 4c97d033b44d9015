import contextlib

import pytest

from tests.pipelines.kubeflow.kfp_server import KfpServer


@pytest.fixture
def kfp_server(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # kfp's folder for its state
    with contextlib.closing(KfpServer()) as server:
        yield server
