"""Where the ML Metadata of a root is: a file in it, or a MySQL database that it may share with others."""

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
"""Of ML Metadata's, when another process has written the same rows meanwhile."""


@dataclass(frozen=True)
class ServerPlace:
    """What a root keeps of the database that it uses.

    Attributes:
      url: Without a password.
      root_id: Part of the names of its pipelines and runs there: other roots have others.
      path: Where the root was then.
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
    """Returns the database that a root uses; None for a file of its own."""
    try:
        return ServerPlace(**json.loads((root / "metadata" / _FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def root_id(root: Path) -> str:
    """Returns what tells the runs of a root from those of others in one database; empty without one."""
    place = server_place(root)
    return place.root_id if place else ""


def check_place(root: Path, settings: MetadataConfig) -> None:
    """Checks that a root can keep its metadata where it is asked to.

    Raises:
      BadInputError: It has kept them somewhere else, is a copy of another root, or the server does not
        let us in.
    """
    known = server_place(root)
    before = (
        known.url if known else (str(sqlite_file(root)) if sqlite_file(root).is_file() else None)
    )
    if before is not None and before != (settings.url or str(sqlite_file(root))):
        raise BadInputError(
            f"metadata.url = {settings.url!r}: the runs of {root} are in {before}, and what they have "
            "made is found there alone. Leave metadata.url as it was, or give another --root."
        )
    if known and known.path != str(root) and Path(known.path, "metadata", _FILE).is_file():
        raise BadInputError(
            f"{root} is a copy of {known.path}: both would write the same runs into {known.url}. Remove "
            f"one of them, or {root / 'metadata'} and {root / 'artifacts'}."
        )
    if settings.url is not None:
        _check_server(settings)


def settle_place(root: Path, settings: MetadataConfig) -> None:
    """Notes which database a root uses, if it uses one and has not noted it yet.

    Args:
      root: Of the pipeline; its lock is held, and `check_place` has passed.
      settings: Of the run.
    """
    if settings.url is not None and server_place(root) is None:
        _write(root, ServerPlace(settings.url, f"r{uuid.uuid4().hex[:8]}", str(root)))


def was_moved(root: Path) -> bool:
    """Returns whether a root may be elsewhere than its artifacts are said to be."""
    place = server_place(root)
    return place is None or place.path != str(root)


def note_move(root: Path) -> None:
    """Notes where a root is, once its artifacts are said to be there."""
    place = server_place(root)
    if place is not None and place.path != str(root):
        _write(root, replace(place, path=str(root)))


def _write(root: Path, place: ServerPlace) -> None:
    atomic_files.write(root / "metadata" / _FILE, json.dumps(asdict(place)))


def connection_config(root: Path, settings: MetadataConfig | None = None) -> Any:
    """Returns how ML Metadata is reached.

    Args:
      root: Of the pipeline.
      settings: Of the run. Default: what the root has noted, and the password of the environment.
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
                # Several first runs make the tables of an empty database at once, and meet half of them.
                if _NO_CONNECTION in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.2, 1.5))
    except (errors.StatusError, RuntimeError) as error:
        raise BadInputError(
            f"metadata.url = {settings.url!r}: ML Metadata cannot use it ({error}). The database has to "
            f"exist, and the user may create tables in it; {PASSWORD_VARIABLE} holds the password where "
            "the configuration does not."
        ) from error
