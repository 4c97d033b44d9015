import pytest

from pipelines.config.metadata import MetadataConfig
from pipelines.errors import BadInputError
from pipelines.root.metadata import place as metadata_place
from pipelines.root.metadata.place import (
    check_place,
    connection_config,
    has_store,
    note_move,
    record_place,
    root_id,
    server_place,
    sqlite_file,
    was_moved,
)

SERVER = MetadataConfig.model_validate({"url": "mysql://pipe:s3cret@db:3307/mlmd"})


@pytest.fixture
def reachable(monkeypatch):
    """Accepts any server as one that can be used."""
    monkeypatch.setattr(metadata_place, "_check_server", lambda settings: None)


def test_without_a_url_it_is_a_file_of_the_root(tmp_path):
    record_place(tmp_path, MetadataConfig())
    assert list(tmp_path.iterdir()) == []
    assert (has_store(tmp_path), root_id(tmp_path), was_moved(tmp_path)) == (False, "", True)
    config = connection_config(tmp_path)
    assert config.sqlite.filename_uri == f"{tmp_path}/metadata/metadata.sqlite"
    assert not config.HasField("mysql")


def test_a_root_notes_its_database_and_has_an_id_there(tmp_path):
    record_place(tmp_path, SERVER)
    place = server_place(tmp_path)
    assert (place.url, place.path) == ("mysql://pipe@db:3307/mlmd", str(tmp_path))
    assert has_store(tmp_path)
    assert not was_moved(tmp_path)
    record_place(tmp_path, SERVER)
    assert server_place(tmp_path) == place
    assert "s3cret" not in (tmp_path / "metadata" / "store.json").read_text()
    record_place(tmp_path / "other", SERVER)
    assert root_id(tmp_path / "other") != root_id(tmp_path) == place.root_id


def test_it_is_reached_with_the_password_of_the_run_or_of_the_environment(tmp_path, monkeypatch):
    record_place(tmp_path, SERVER)
    monkeypatch.setenv("PIPELINES_METADATA_PASSWORD", "of the environment")
    assert connection_config(tmp_path, SERVER).mysql.password == "s3cret"
    config = connection_config(tmp_path)
    assert (config.mysql.host, config.mysql.port, config.mysql.password) == (
        "db", 3307, "of the environment",
    )  # fmt: skip
    assert config.retry_options.max_num_retries > 5


def test_a_root_stays_where_its_metadata_are(tmp_path, reachable):
    server, file = tmp_path / "server", tmp_path / "file"
    record_place(server, SERVER)
    check_place(server, SERVER)
    for other in (MetadataConfig(), MetadataConfig(url="mysql://pipe@elsewhere/mlmd")):
        with pytest.raises(BadInputError, match=r"are in mysql://pipe@db:3307/mlmd, and their"):
            check_place(server, other)
    sqlite_file(file).parent.mkdir(parents=True)
    sqlite_file(file).touch()
    check_place(file, MetadataConfig())
    with pytest.raises(BadInputError, match=r"are in .*metadata.sqlite, and their artifacts"):
        check_place(file, SERVER)


def test_a_root_may_be_moved_and_not_copied(tmp_path, reachable):
    record_place(tmp_path / "root", SERVER)
    moved = (tmp_path / "root").rename(tmp_path / "moved")
    check_place(moved, SERVER)
    assert was_moved(moved)
    note_move(moved)
    assert not was_moved(moved)
    (tmp_path / "copy" / "metadata").mkdir(parents=True)
    (tmp_path / "copy" / "metadata" / "store.json").write_bytes(
        (moved / "metadata" / "store.json").read_bytes()
    )
    with pytest.raises(BadInputError, match=r"copy is a copy of .*moved: both would write"):
        check_place(tmp_path / "copy", SERVER)


def test_a_server_that_cannot_be_reached_is_bad_input_without_the_password(tmp_path):
    settings = MetadataConfig.model_validate({"url": "mysql://pipe:s3cret@127.0.0.1:1/mlmd"})
    with pytest.raises(BadInputError, match=r"ML Metadata cannot use it .*") as error:
        check_place(tmp_path, settings)
    assert "s3cret" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
