from pathlib import Path

import ml_metadata
import pytest
from ml_metadata.proto import metadata_store_pb2

from components.pusher.provenance import Provenance
from components.pusher.served_model import ServedModelStrategy
from components.pusher.versions import push_version
from tests.pushed_versions import add_model


class Root:
    """A folder with models, a metadata store that knows them, and versions that are served."""

    def __init__(self, folder):
        self.serving = folder / "serving"
        self._artifacts = folder / "artifacts"
        config = metadata_store_pb2.ConnectionConfig()
        config.fake_database.SetInParent()
        self.store = ml_metadata.MetadataStore(config)
        self._types = {
            name: self.store.put_artifact_type(metadata_store_pb2.ArtifactType(name=name))
            for name in ("Model", "ModelRun")
        }

    def train(self, name):
        """Makes a model and returns its uri; another artifact is in the same place."""
        model = self._artifacts / name
        (model / "Format-Serving").mkdir(parents=True)
        (model / "Format-Serving" / "saved_model.pb").write_text(name)
        kinds = (self._types[kind] for kind in ("Model", "ModelRun"))
        self.store.put_artifacts(
            [metadata_store_pb2.Artifact(type_id=kind, uri=str(model)) for kind in kinds]
        )
        return str(model)

    def push(self, model_uri, version):
        push_version(f"{model_uri}/Format-Serving", str(self.serving), version, Provenance("run", model_uri))

    def resolve(self, **config):
        strategy = ServedModelStrategy(base_directory=str(self.serving), **config)
        resolved = strategy.resolve_artifacts(self.store, {"model": []})
        assert list(resolved) == ["model"]
        assert {artifact.type_name for artifact in resolved["model"]} <= {"Model"}
        return [artifact.uri for artifact in resolved["model"]]


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path)


def test_the_baseline_is_what_is_served_not_what_is_newest(root):
    assert root.resolve() == []
    first, second, unpushed = (root.train(name) for name in ("1", "2", "3"))
    assert root.resolve() == []
    root.push(first, 1000)
    root.push(second, 2000)
    assert root.resolve() == [second]
    assert unpushed not in root.resolve()
    (root.serving / "2000").rename(root.serving.parent / "withdrawn")  # a rollback
    assert root.resolve() == [first]


def test_a_version_of_unknown_origin_is_an_error_where_a_baseline_is_needed(root):
    add_model(root.serving / "1")
    message = r"Version 1 in .*serving is live.* not pushed by this Pusher.* without max_regression"
    with pytest.raises(LookupError, match=message):
        root.resolve()
    assert root.resolve(required=False) == []


def test_a_version_whose_model_was_deleted_is_an_error_too(root):
    model = root.train("1")
    root.push(model, 1000)
    Path(model).rename(Path(model).with_name("elsewhere"))
    with pytest.raises(LookupError, match=f"its model is no longer in {model}"):
        root.resolve()
