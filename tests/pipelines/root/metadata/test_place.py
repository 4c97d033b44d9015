import pytest

from pipelines.config.metadata import MetadataConfig
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.metadata import place as metadata_place

SERVER = MetadataConfig.model_validate({"url": "mysql://pipe:s3cret@db:3307/mlmd"})


@pytest.fixture
def reachable(monkeypatch):
    """Accepts any server as one that can be used."""
    monkeypatch.setattr(metadata_place, "_check_server", lambda settings: None)


def test_without_a_url_it_is_a_file_of_the_root(tmp_path):
    Root(tmp_path).metadata.record(MetadataConfig())
    assert list(tmp_path.iterdir()) == []
    assert (
        Root(tmp_path).metadata.exists(),
        Root(tmp_path).metadata.root_id(),
        Root(tmp_path).metadata.was_moved(),
    ) == (False, "", True)
    config = Root(tmp_path).metadata.connection_config()
    assert config.sqlite.filename_uri == f"{tmp_path}/metadata/metadata.sqlite"
    assert not config.HasField("mysql")


def test_a_root_notes_its_database_and_has_an_id_there(tmp_path):
    Root(tmp_path).metadata.record(SERVER)
    place = Root(tmp_path).metadata.server()
    assert (place.url, place.path) == ("mysql://pipe@db:3307/mlmd", str(tmp_path))
    assert Root(tmp_path).metadata.exists()
    assert not Root(tmp_path).metadata.was_moved()
    Root(tmp_path).metadata.record(SERVER)
    assert Root(tmp_path).metadata.server() == place
    assert "s3cret" not in (tmp_path / "metadata" / "store.json").read_text()
    Root(tmp_path / "other").metadata.record(SERVER)
    assert (
        Root(tmp_path / "other").metadata.root_id()
        != Root(tmp_path).metadata.root_id()
        == place.root_id
    )


def test_it_is_reached_with_the_password_of_the_run_or_of_the_environment(tmp_path, monkeypatch):
    Root(tmp_path).metadata.record(SERVER)
    monkeypatch.setenv("PIPELINES_METADATA_PASSWORD", "of the environment")
    assert Root(tmp_path).metadata.connection_config(SERVER).mysql.password == "s3cret"
    config = Root(tmp_path).metadata.connection_config()
    assert (config.mysql.host, config.mysql.port, config.mysql.password) == (
        "db", 3307, "of the environment",
    )  # fmt: skip
    assert config.retry_options.max_num_retries > 5


def test_a_root_stays_where_its_metadata_are(tmp_path, reachable):
    server, file = tmp_path / "server", tmp_path / "file"
    Root(server).metadata.record(SERVER)
    Root(server).metadata.check(SERVER)
    for other in (MetadataConfig(), MetadataConfig(url="mysql://pipe@elsewhere/mlmd")):
        with pytest.raises(BadInputError, match=r"are in mysql://pipe@db:3307/mlmd, and their"):
            Root(server).metadata.check(other)
    Root(file).metadata.sqlite_file.parent.mkdir(parents=True)
    Root(file).metadata.sqlite_file.touch()
    Root(file).metadata.check(MetadataConfig())
    with pytest.raises(BadInputError, match=r"are in .*metadata.sqlite, and their artifacts"):
        Root(file).metadata.check(SERVER)


def test_a_root_may_be_moved_and_not_copied(tmp_path, reachable):
    Root(tmp_path / "root").metadata.record(SERVER)
    moved = (tmp_path / "root").rename(tmp_path / "moved")
    Root(moved).metadata.check(SERVER)
    assert Root(moved).metadata.was_moved()
    Root(moved).metadata.note_move()
    assert not Root(moved).metadata.was_moved()
    (tmp_path / "copy" / "metadata").mkdir(parents=True)
    (tmp_path / "copy" / "metadata" / "store.json").write_bytes(
        (moved / "metadata" / "store.json").read_bytes()
    )
    with pytest.raises(BadInputError, match=r"copy is a copy of .*moved: both would write"):
        Root(tmp_path / "copy").metadata.check(SERVER)


def test_a_server_that_cannot_be_reached_is_bad_input_without_the_password(tmp_path):
    settings = MetadataConfig.model_validate({"url": "mysql://pipe:s3cret@127.0.0.1:1/mlmd"})
    with pytest.raises(BadInputError, match=r"ML Metadata cannot use it .*") as error:
        Root(tmp_path).metadata.check(settings)
    assert "s3cret" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
