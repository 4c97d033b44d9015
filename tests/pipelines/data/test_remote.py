import json
import sqlite3
import sys
from pathlib import Path

import pytest

from pipelines.config.load import load_config
from pipelines.data import remote
from pipelines.data.files import find_csv_files
from pipelines.errors import BadInputError


def config_of(path, *settings):
    return load_config(data=path, label="y", settings=settings)


def copied(path, folder, *settings, pinned=()):
    """Returns the names and contents that a run would read."""
    config = config_of(path, *settings)
    place = remote.local_copy(config.data, config.split, folder, pinned)
    files = find_csv_files(place)
    return {file.name: file.read_text() for file in files}


@pytest.fixture
def store():
    """Writes files into fsspec's store in memory."""
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec, of the extra remote-data")
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]

    def write(**texts):
        for name, text in texts.items():
            system.pipe(f"/bucket/{name.replace('__', '/').replace('_', '.')}", text.encode())
        return system

    yield write
    system.store.clear()


def test_a_path_on_this_machine_is_left_alone(tmp_path):
    config = config_of("no/such.csv")
    assert remote.local_copy(config.data, config.split, tmp_path / "data") == "no/such.csv"
    assert not (tmp_path / "data").exists()


def test_a_file_a_folder_and_a_pattern_are_copied(store, tmp_path):
    store(a_csv="1", b_csv="2", c_parquet="3", notes_txt="n", x__a_csv="4", y__a_csv="5")
    assert copied("memory://bucket/a.csv", tmp_path) == {"a.csv": "1"}
    assert copied("memory://bucket/notes.txt", tmp_path) == {"notes.txt": "n"}
    assert copied("memory://bucket/[ab].csv", tmp_path) == {"a.csv": "1", "b.csv": "2"}
    assert set(copied("memory://bucket/x", tmp_path)) == {"a.csv"}
    config = config_of("memory://bucket/?/a.csv")
    files = find_csv_files(remote.local_copy(config.data, config.split, tmp_path))
    assert [file.read_text() for file in files] == ["4", "5"]  # two files of one name
    with pytest.raises(BadInputError, match="cannot be read: FileNotFoundError"):
        copied("memory://bucket/none.csv", tmp_path)
    with pytest.raises(BadInputError, match="no CSV or Parquet file in memory://bucket/z"):
        copied("memory://bucket/z*.csv", tmp_path)


def test_only_what_has_changed_is_read_again_and_a_copy_never_changes(store, tmp_path, monkeypatch):
    system = store(a_csv="1", b_csv="2")
    read = []
    get_file = system.get_file
    monkeypatch.setattr(system, "get_file", lambda *names: (read.append(names[0]), get_file(*names)))

    def paths():
        config = config_of("memory://bucket/*.csv")
        return find_csv_files(remote.local_copy(config.data, config.split, tmp_path))

    first = paths()
    assert (read, paths()) == (["/bucket/a.csv", "/bucket/b.csv"], first)
    store(b_csv="3")
    second = paths()
    assert read[2:] == ["/bucket/b.csv"]
    assert [file.read_text() for file in (*first, *second)] == ["1", "2", "1", "3"]
    store(b_csv="2")  # again, at another time
    assert (paths(), len(read)) == (first, 4)
    assert (paths(), len(read)) == (first, 4)
    assert not list(tmp_path.glob(".*"))


def test_a_copy_has_no_name_with_the_value_of_a_variable(store, tmp_path, monkeypatch):
    store(s3cret_csv="1")
    monkeypatch.setenv("SHARE", "s3cret")
    assert copied("memory://bucket/${SHARE}.csv", tmp_path) == {"${SHARE}.csv": "1"}
    assert not any("s3cret" in file.read_text() for file in tmp_path.glob("*/.origin.json"))


def test_files_without_a_version_are_compared_by_their_contents(store, tmp_path, monkeypatch):
    store(a_csv="1")
    monkeypatch.setattr(remote, "_VERSION_KEYS", ())
    config = config_of("memory://bucket/a.csv")
    first = remote.local_copy(config.data, config.split, tmp_path)
    assert remote.local_copy(config.data, config.split, tmp_path) == first
    store(a_csv="2")
    assert remote.local_copy(config.data, config.split, tmp_path) != first


def test_only_the_files_of_the_wanted_spans_are_copied(store, tmp_path):
    store(**{f"day-{day}__version-1__t_csv": str(day) for day in (8, 9, 10)})
    store(**{"day-10__version-2__t_csv": "new", "day-11__version-1__t_csv_tmp": "half"})
    path = "memory://bucket/day-{SPAN}/version-{VERSION}"
    config = config_of(path, "data.spans=last 2")
    place = Path(remote.local_copy(config.data, config.split, tmp_path).split("/day")[0])
    assert {file.read_text() for file in place.rglob("*.csv")} == {"9", "new"}
    pinned = [{"span": 9, "version": 1, "num_files": 1}]
    older = Path(remote.local_copy(config.data, config.split, tmp_path, pinned).split("/day")[0])
    assert [file.read_text() for file in older.rglob("*.csv")] == ["9"]
    with pytest.raises(BadInputError, match="there is no span 5 of memory://bucket/day-"):
        copied(path, tmp_path, "data.spans=5")


def test_the_files_of_each_split_are_copied(store, tmp_path):
    store(train__a_csv="1", train__b_csv="2", test__a_csv="3", other__a_csv="4")
    splits = ("split.by=files", "split.train=train/*.csv", "split.eval=test/a.csv")
    config = config_of("memory://bucket", *splits)
    place = Path(remote.local_copy(config.data, config.split, tmp_path))
    names = {str(file.relative_to(place)) for file in place.rglob("*.csv")}
    assert names == {"train/a.csv", "train/b.csv", "test/a.csv"}


def test_a_name_that_leads_out_of_the_folder_is_ignored(store, tmp_path):
    system = store(a_csv="1")
    system.store["/bucket/../b.csv"] = system.store["/bucket/a.csv"]
    assert set(copied("memory://bucket/*.csv", tmp_path)) == {"a.csv"}
    assert not (tmp_path / "b.csv").exists()


def test_a_resumed_run_finds_the_copy_that_it_has_read_also_in_a_root_that_was_moved(store, tmp_path):
    store(a_csv="1")
    config = config_of("memory://bucket/*.csv")
    before = tmp_path / "before"
    place = remote.local_copy(config.data, config.split, before)
    store(a_csv="2")
    remote.local_copy(config.data, config.split, before)
    before.rename(tmp_path / "after")
    files = [{"path": place.replace("*", "a")}]
    again = remote.copy_of_run(tmp_path / "after", files)
    assert [file.read_text() for file in find_csv_files(again)] == ["1"]
    assert remote.copy_of_run(tmp_path / "other", files) is None


def test_a_temporary_copy_is_removed_and_messages_name_what_is_elsewhere(store, tmp_path):
    store(a_csv="1")
    config = config_of("memory://bucket/a.csv")
    refused = pytest.raises(BadInputError, match=r"^a\.csv, line 3: bad$")
    with refused, remote.temporary_copy(config.data, config.split) as path:
        raise BadInputError(f"{path}, line 3: bad")
    assert not Path(path).exists()


@pytest.fixture
def database(tmp_path):
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (n INTEGER, x REAL, name TEXT)")
        rows = [(1, None, "a%"), (2, 2.5, "b"), (3, None, None)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.close()
    return f"sqlite:///{file}"


def query(database, sql, folder):
    from pyarrow import parquet

    config = config_of(database, f"data.query={sql}")
    return parquet.read_table(remote.local_copy(config.data, config.split, folder))


def test_the_rows_of_a_query_are_a_table(database, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_ROWS_AT_A_TIME", 1)  # a column may begin with missing values
    sql = "SELECT *, 'a:b' AS c FROM t WHERE name IS NULL OR name LIKE '%' ORDER BY n"
    table = query(database, sql, tmp_path)
    assert table.to_pydict() == {
        "n": [1, 2, 3],
        "x": [None, 2.5, None],
        "name": ["a%", "b", None],
        "c": ["a:b"] * 3,
    }
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "string", "string"]


def test_the_same_rows_are_the_same_file_and_new_rows_are_another(database, tmp_path):
    config = config_of(database, "data.query=SELECT * FROM t")
    first = remote.local_copy(config.data, config.split, tmp_path)
    assert remote.local_copy(config.data, config.split, tmp_path) == first
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        connection.execute("INSERT INTO t VALUES (4, 4.0, 'd')")
    connection.close()
    second = remote.local_copy(config.data, config.split, tmp_path)
    assert second != first
    assert remote.copy_of_run(tmp_path, [{"path": first}]) == first
    assert json.loads((Path(second).parent / ".origin.json").read_text())["path"] == "query.parquet"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT n, x AS n FROM t", "two columns 'n'.*AS"),
        ("SELECT * FROM t WHERE n > 9", "returns no rows"),
        ("SELECT * FROM missing", "cannot be read: OperationalError: .*no such table: missing"),
        ("DELETE FROM t", "cannot be read"),
    ],
)
def test_a_query_without_a_table_is_refused_and_changes_nothing(database, sql, message, tmp_path):
    with pytest.raises(BadInputError, match=message):
        query(database, sql, tmp_path)
    assert query(database, "SELECT COUNT(*) AS rows FROM t", tmp_path).to_pydict() == {"rows": [3]}


def test_cells_without_a_type_of_files_become_text():
    import uuid

    key = uuid.UUID(int=1)
    assert remote._array([key, None]).to_pylist() == [str(key), None]
    assert remote._array([[1, 2], None]).to_pylist() == ["[1, 2]", None]
    assert remote._array([1, "a"]).to_pylist() == ["1", "a"]
    assert remote._array([2**70, 1]).to_pylist() == [str(2**70), "1"]


def test_no_message_shows_the_value_of_a_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "s3cret!")
    monkeypatch.setenv("SHOP_URL", "nosuchstore://reader:s3cret%21@db/shop")
    for path, settings in (
        ("sqlite:////${SHOP_PASSWORD}/shop.db", ["data.query=SELECT 1"]),
        ("${SHOP_URL}", ["data.query=SELECT 1"]),
        ("${SHOP_URL}", []),
    ):
        with pytest.raises(BadInputError, match="cannot be read") as refused:
            copied(path, tmp_path, *settings)
        assert "s3cret" not in str(refused.value)
        assert refused.value.__context__ is None  # a traceback shows the context, too


@pytest.mark.parametrize(
    ("path", "settings", "missing", "clients"),
    [
        ("s3://bucket/trips.csv", (), "fsspec", r'"fsspec\[http\]" gcsfs s3fs'),
        ("postgresql://db/shop", ("data.query=SELECT 1",), "sqlalchemy", r'"psycopg\[binary\]" sqlalchemy'),
    ],
)
def test_a_missing_client_comes_with_the_command_that_installs_it(
    path, settings, missing, clients, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BadInputError, match=f"Error: import of {missing} halted.*`pip install {clients}`"):
        copied(path, tmp_path, *settings)
