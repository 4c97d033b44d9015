"""The location of a root's ML Metadata: a file in it, or a MySQL database, possibly shared by roots."""

import json
import random
import time
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.config.metadata import PASSWORD_VARIABLE, MetadataConfig
from pipelines.errors import BadInputError

_FILE = "store.json"
_NO_CONNECTION = "mysql_real_connect"
_TABLES_SECS = 30
_RETRIES = 20
"""ML Metadata's error when another process has written the same rows meanwhile."""


@dataclass(frozen=True)
class ServerPlace:
    """A root's record of the database that it uses.

    Attributes:
      url: Address without a password.
      root_id: Part of the names of the root's pipelines and runs there, unique to this root.
      path: Path of the root when this was recorded.
    """

    url: str
    root_id: str
    path: str


def sqlite_file(root: Path) -> Path:
    """Returns the path of the sqlite file."""
    return root / "metadata" / "metadata.sqlite"


def has_store(root: Path) -> bool:
    """Returns whether a root has ML Metadata."""
    return sqlite_file(root).is_file() or server_place(root) is not None


def server_place(root: Path) -> ServerPlace | None:
    """Returns the database that a root uses; None if it uses a file of its own."""
    try:
        return ServerPlace(**json.loads((root / "metadata" / _FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def root_id(root: Path) -> str:
    """Returns the id that distinguishes the root's runs in a shared database; empty without a database."""
    place = server_place(root)
    return place.root_id if place else ""


def check_place(root: Path, settings: MetadataConfig) -> None:
    """Checks that a root can keep its metadata in the requested place.

    Raises:
      BadInputError: The root has its metadata somewhere else, is a copy of another root, or the server
        refuses the connection.
    """
    known = server_place(root)
    before = (
        known.url if known else (str(sqlite_file(root)) if sqlite_file(root).is_file() else None)
    )
    if before is not None and before != (settings.url or str(sqlite_file(root))):
        raise BadInputError(
            f"metadata.url = {settings.url!r}: the runs of {root} are in {before}, and their "
            "artifacts are recorded only there. Leave metadata.url as it was, or give another --root."
        )
    if known and known.path != str(root) and Path(known.path, "metadata", _FILE).is_file():
        raise BadInputError(
            f"{root} is a copy of {known.path}: both would write the same runs into {known.url}. Remove "
            f"one of them, or {root / 'metadata'} and {root / 'artifacts'}."
        )
    if settings.url is not None:
        _check_server(settings)


def record_place(root: Path, settings: MetadataConfig) -> None:
    """Records the database that a root uses, unless it has none or has recorded it already.

    Args:
      root: Root folder of the pipeline; its lock is held, and `check_place` has passed.
      settings: Metadata settings of the run.
    """
    if settings.url is not None and server_place(root) is None:
        _write(root, ServerPlace(settings.url, f"r{uuid.uuid4().hex[:8]}", str(root)))


def was_moved(root: Path) -> bool:
    """Returns whether a root may be somewhere else than the paths of its artifacts say."""
    place = server_place(root)
    return place is None or place.path != str(root)


def note_move(root: Path) -> None:
    """Records the path of a root, once the paths of its artifacts are right."""
    place = server_place(root)
    if place is not None and place.path != str(root):
        _write(root, replace(place, path=str(root)))


def _write(root: Path, place: ServerPlace) -> None:
    atomic_files.write(root / "metadata" / _FILE, json.dumps(asdict(place)))


def connection_config(root: Path, settings: MetadataConfig | None = None) -> Any:
    """Returns the connection settings of ML Metadata.

    Args:
      root: Root folder of the pipeline.
      settings: Metadata settings of the run. Default: those recorded in the root, and the password of
        the environment.
    """
    from ml_metadata.proto import metadata_store_pb2

    place = server_place(root)
    if settings is None:
        settings = MetadataConfig(url=place.url if place else None)
    config = metadata_store_pb2.ConnectionConfig()
    if settings.url is None:
        config.sqlite.filename_uri = str(sqlite_file(root))
        config.sqlite.connection_mode = (
            metadata_store_pb2.SqliteMetadataSourceConfig.READWRITE_OPENCREATE
        )
        return config
    for name, value in settings.mysql().items():
        setattr(config.mysql, name, value)
    config.retry_options.max_num_retries = _RETRIES
    return config


def _check_server(settings: MetadataConfig) -> None:
    import ml_metadata
    from ml_metadata import errors

    config = connection_config(Path(), settings)
    deadline = time.monotonic() + _TABLES_SECS
    try:
        while True:
            try:
                ml_metadata.MetadataStore(config)
                return
            except (errors.StatusError, RuntimeError) as error:
                # First runs that create the tables of an empty database at once disturb each other.
                if _NO_CONNECTION in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.2, 1.5))
    except (errors.StatusError, RuntimeError) as error:
        raise BadInputError(
            f"metadata.url = {settings.url!r}: ML Metadata cannot use it ({error}). The database has to "
            f"exist, and the user may create tables in it; {PASSWORD_VARIABLE} holds the password where "
            "the configuration does not."
        ) from error
