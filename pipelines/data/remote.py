"""Copies data from a URL or a database to files of this machine."""

import hashlib
import json
import posixpath
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from components.example_gen.file_names import split_name
from pipelines import atomic_files
from pipelines.config.data import DataConfig, SplitConfig
from pipelines.config.data_url import ExpandedUrl, is_url
from pipelines.config.span_pattern import as_glob, has_placeholder
from pipelines.data.file_states import FileState
from pipelines.data.files import NoCsvFileError
from pipelines.data.spans import SpanRecord, resolve_spans
from pipelines.errors import BadInputError

_ORIGIN = ".origin.json"
_ROWS_AT_A_TIME = 50_000
_VERSION_KEYS = (
    "ETag", "etag", "generation", "md5Hash", "Content-MD5", "Last-Modified", "LastModified", "last_modified",
    "mtime", "updated", "created",
)  # fmt: skip
"""Keys of what fsspec's file systems tell about a file that changes whenever it is written."""


def local_copy(
    data: DataConfig, split: SplitConfig, folder: Path, pinned_spans: Sequence[SpanRecord] = ()
) -> str:
    """Returns the path of data on this machine.

    Data of a URL or a database are copied to a subfolder of `folder`, which is named by their contents.
    """
    if not is_url(data.path):
        return data.path
    url = ExpandedUrl(data.path)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if data.query is not None:
            return store_table(_query(url.value, data.query), folder, "query.parquet")
        import fsspec

        system, path = fsspec.core.url_to_fs(url.value)
        system.invalidate_cache()
        infos, pattern = _find_files(system, path, data, split, pinned_spans)
        return _download(system, infos, folder, pattern)
    except BadInputError:
        raise
    except Exception as error:  # each file system and each driver has its own
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ImportError):
            clients = '"fsspec[http]" gcsfs s3fs' if data.query is None else '"psycopg[binary]" sqlalchemy'
            reason += f". `pip install {clients}` installs the usual clients"
        elif data.query is None and "protocol not known" in reason.lower():
            reason += ". For a database, set data.query"
    # Outside of the handlers: the original error, which would become the context, may hold a password.
    raise BadInputError(f"{data.path} cannot be read: {url.hide_values(reason)}")


@contextmanager
def temporary_copy(data: DataConfig, split: SplitConfig) -> Iterator[str]:
    """Yields the path of data on this machine; a copy exists until the end of the context."""
    if not is_url(data.path):
        yield data.path
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield local_copy(data, split, Path(folder).resolve())
        except BadInputError as error:  # the copies no longer exist when the message is read
            names = re.sub(rf"{re.escape(str(Path(folder).resolve()))}/[0-9a-f]+/", "", str(error))
            raise BadInputError(names) from error


def copy_of_run(folder: Path, files: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the path of the copy that a run has read; None if the copy no longer exists.

    `files`: `data_files` of the run's record.
    """
    parts = {part for file in files for part in Path(file["path"]).parts}
    for origin in folder.glob(f"*/{_ORIGIN}"):
        if origin.parent.name in parts:
            return str(origin.parent / atomic_files.read_json(origin)["path"])
    return None


def store_table(table: Any, folder: Path, name: str) -> str:
    """Writes a pyarrow table as Parquet, in a subfolder that is named by the content; returns its path."""
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    partial = atomic_files.partial_path(folder / name)
    pyarrow.parquet.write_table(table, partial)
    target = folder / FileState.read(partial).sha256[:16] / name
    target.parent.mkdir(exist_ok=True)
    partial.replace(target)
    atomic_files.write(target.parent / _ORIGIN, json.dumps({"path": name, "versions": {}}))
    return str(target)


def _find_files(
    system: Any, path: str, data: DataConfig, split: SplitConfig, pinned_spans: Sequence[SpanRecord]
) -> tuple[dict[str, Any], str]:
    """Returns the properties of each file, and the path of the data: a file, a pattern, or empty for all.

    Paths are relative to the folder that contains all files.
    """
    is_http = path.startswith("http")
    marks = "*[{" if is_http else "*?[{"  # a question mark begins the query of an http URL
    parts = path.rstrip("/").split("/")
    plain = next((n for n, part in enumerate(parts) if any(mark in part for mark in marks)), len(parts))
    base, pattern = "/".join(parts[:plain]), "/".join(parts[plain:])
    if not pattern and not (path.endswith("/") if is_http else system.isdir(path)):
        written = data.path if "://" in data.path else path  # with the names of secret variables
        name = posixpath.basename(written.partition("?")[0] if is_http else written) or "data.csv"
        return {name: system.info(path)}, name
    wanted = [pattern or "*"]
    if split.by == "files" and not pattern:
        wanted = [str(getattr(split, name)) for name in split.names]
    found: dict[str, Any] = {}
    for part in wanted:
        found |= system.glob(f"{base}/{as_glob(part)}", detail=True)
    for info in list(found.values()):
        if has_placeholder(pattern) and info["type"] == "directory":  # of a span
            found |= {inner["name"]: inner for inner in system.ls(info["name"], detail=True)}
    files = {name.removeprefix(base).strip("/"): info for name, info in sorted(found.items())}
    files = {
        name: info
        for name, info in files.items()
        if info["type"] == "file"
        and not {"", ".."} & {*name.split("/")}  # it would lead out of the folder
        and (wanted != ["*"] or split_name(name)[1])
    }
    if has_placeholder(pattern):
        needed = _names_of_spans(data, pattern, files, pinned_spans)
        files = {name: info for name, info in files.items() if name in needed}
    if not files:
        raise NoCsvFileError(f"There is no CSV or Parquet file in {data.path}.")
    return files, pattern


def _version(info: Mapping[str, Any]) -> str:
    """Returns a hash that changes when a file is written; empty if the file system does not tell."""
    told = {key: str(info[key]) for key in _VERSION_KEYS if info.get(key)}
    return _hash([info["name"], told]) if told else ""


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _names_of_spans(
    data: DataConfig, pattern: str, names: Collection[str], pinned_spans: Sequence[SpanRecord]
) -> set[str]:
    """Returns the files of the spans to read, which are found in a folder of empty files of these names."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).touch()
        try:
            spans = resolve_spans(f"{place}/{pattern}", data.selection, pinned=pinned_spans)
        except BadInputError as error:
            message = str(error).replace(f"{place}/{pattern}", data.path).replace(f"{place}/", "")
            raise BadInputError(message) from error
        return {file.relative_to(place).as_posix() for file in spans.files}


def _download(system: Any, infos: Mapping[str, Any], folder: Path, path: str) -> str:
    """Copies files to a subfolder that is named by their contents, without those that earlier copies have."""
    versions = {name: _version(info) or _version(system.info(info["name"])) for name, info in infos.items()}
    origin = {"path": path, "versions": versions}
    earlier = {file.parent: atomic_files.read_json(file) for file in folder.glob(f"*/{_ORIGIN}")}
    for target, its_origin in earlier.items():
        if its_origin == origin and all(versions.values()):
            return str(target / path)
    copies = {
        version: target / name
        for target, its_origin in earlier.items()
        for name, version in its_origin["versions"].items()
    }
    partial = atomic_files.partial_path(folder / _hash(origin)[:16])
    for name, version in versions.items():
        (partial / name).parent.mkdir(parents=True, exist_ok=True)
        if version and version in copies:
            shutil.copyfile(copies[version], partial / name)
        else:
            system.get_file(infos[name]["name"], str(partial / name))
    # The same content always has the same folder: a cached CsvExampleGen has read that one.
    contents = {name: FileState.read(partial / name).sha256 for name in versions}
    target = folder / _hash([path, contents])[:16]
    if target.exists():
        shutil.rmtree(partial)
    else:
        partial.rename(target)
    atomic_files.write(target / _ORIGIN, json.dumps(origin))
    return str(target / path)


def _query(database: str, query: str) -> Any:
    """Returns the rows of a query as a pyarrow table."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(database, hide_parameters=True)
    options = {"no_parameters": True, "stream_results": True, "yield_per": _ROWS_AT_A_TIME}
    try:
        with engine.connect() as connection:  # which never commits
            result = connection.exec_driver_sql(query, execution_options=options)
            names = list(result.keys())
            if repeated := sorted({name for name in names if names.count(name) > 1}):
                raise BadInputError(f"data.query returns two columns {repeated[0]!r}. Rename one, with AS.")
            tables = [
                pa.table([_array(cells) for cells in zip(*rows, strict=True)], names)
                for rows in result.partitions()
            ]
    finally:
        engine.dispose()
    if not tables:
        raise BadInputError("data.query returns no rows.")
    return pa.concat_tables(tables, promote_options="permissive")


def _array(cells: Sequence[Any]) -> Any:
    """Returns the cells of a column; as text if files have no type for them, such as UUIDs."""
    try:
        array = pa.array(cells)
        if not pa.types.is_nested(array.type):
            return array
    except (pa.ArrowException, OverflowError):
        pass
    return pa.array([None if cell is None else str(cell) for cell in cells])
