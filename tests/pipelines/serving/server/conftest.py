import asyncio
import contextlib
import json
import pathlib
import threading
import time

import pytest
import tensorflow as tf

from pipelines.root import Root
from pipelines.serving.model import ModelFolder
from pipelines.serving.server.app import make_app
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.process import ServerAddress, _listening, http_server
from pipelines.serving.server.request_monitor import RequestMonitor
from pipelines.serving.server.server_settings import ServerSettings
from pipelines.serving.server.versions import ServedVersions
from tests.pipelines import sum_models


class Client:
    """Sends requests to a server by httpx; `port` is that of the server."""

    def __init__(self, port, versions, metrics):
        import httpx

        self.port = port
        self.versions = versions
        self.metrics = metrics
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def get(self, path, **settings):
        return self._client.get(path, **settings)

    def post(self, path, body, **settings):
        """Posts a JSON value, or text as it is."""
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        return self._client.post(path, content=content, **settings)

    def close(self):
        self._client.close()


@contextlib.contextmanager
def served(root, settings=None, num_versions=1, name="sums", sample=None, **changes):
    """Serves a root or a `ModelFolder` in a thread; yields a `Client`. `sample` limits sampled requests."""
    metrics = ServerMetrics()
    place = root if isinstance(root, ModelFolder) else Root(root)
    versions = ServedVersions(place, name, metrics, num_versions, **changes)
    versions.refresh()
    monitor = sample and RequestMonitor(Root(root), sample, metrics, time.time)
    settings = settings or ServerSettings(poll_secs=0.05)
    app = make_app(versions, metrics, settings, monitor)
    with _listening(ServerAddress(port=0)) as listener:
        server = http_server(app, settings, metrics)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        client = Client(listener.getsockname()[1], versions, metrics)
        try:
            yield client
        finally:
            client.close()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


# Not for the whole session: an event loop that sees another test's clock sleeps until that time has come.
@pytest.fixture(scope="module")
def client(exported, tmp_path_factory):
    """A server of a classifier, version 5, for tests that push nothing."""
    root = sum_models.push(exported("classifier"), tmp_path_factory.mktemp("served"), 5)
    with served(root) as client:
        yield client


@pytest.fixture(scope="module")
def regression(exported, tmp_path_factory):
    """A server of a regression, version 5, for tests that push nothing."""
    root = sum_models.push(exported("regressor"), tmp_path_factory.mktemp("served"), 5)
    with served(root) as client:
        yield client


@pytest.fixture(scope="module")
def old_export():
    """A server of the SavedModel of an old program, see `old_export/make.py`."""
    place = ModelFolder(pathlib.Path(__file__).parents[1] / "old_export")
    with served(place, name=place.name) as client:
        yield client


@pytest.fixture(scope="module")
def matrices(tmp_path_factory):
    """A server of a model that takes no rows: its signature has a matrix, a text and a number."""

    class Sums(tf.Module):
        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 3], tf.float32, "x"),
                tf.TensorSpec([None, None], tf.string, "words"),
                tf.TensorSpec([], tf.int64, "times"),
            ]
        )
        def sums(self, x, words, times):
            total = tf.reduce_sum(x, axis=1) * tf.cast(times, tf.float32)
            half = tf.cast(total / 2, tf.bfloat16)
            return {"total": total, "half": half, "text": tf.strings.reduce_join(words, axis=1)}

    sums = Sums()
    folder = tmp_path_factory.mktemp("matrices") / "sums"
    tf.saved_model.save(sums, str(folder), signatures={"sum_up": sums.sums})
    with served(ModelFolder(folder)) as client:
        yield client
