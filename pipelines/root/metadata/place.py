"""The location of a root's ML Metadata: a file in it, or a MySQL database, possibly shared by roots."""

import json
import random
import time
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import atomic_files
from pipelines.config.metadata import PASSWORD_VARIABLE, MetadataConfig
from pipelines.errors import BadInputError

if TYPE_CHECKING:
    import ml_metadata

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


class MetadataPlace:
    """The place of a root's ML Metadata.

    Args:
      root: Path of the root.
      artifacts: Folder of the artifacts, whose paths are in ML Metadata.
    """

    def __init__(self, root: Path, artifacts: Path):
        self._root = root
        self._artifacts = artifacts
        self.folder = root / "metadata"
        self.sqlite_file = self.folder / "metadata.sqlite"

    def exists(self) -> bool:
        """Returns whether the root has ML Metadata."""
        return self.sqlite_file.is_file() or self.server() is not None

    def server(self) -> ServerPlace | None:
        """Returns the database that the root uses; None if it uses a file of its own."""
        try:
            return ServerPlace(**json.loads((self.folder / _FILE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def root_id(self) -> str:
        """Returns the id that distinguishes the root's runs in a shared database; empty without one."""
        place = self.server()
        return place.root_id if place else ""

    def check(self, settings: MetadataConfig) -> None:
        """Checks that the root can keep its metadata in the requested place.

        Raises:
          BadInputError: The root has its metadata somewhere else, is a copy of another root, or the server
            refuses the connection.
        """
        file = str(self.sqlite_file)
        known = self.server()
        before = known.url if known else (file if self.sqlite_file.is_file() else None)
        if before is not None and before != (settings.url or file):
            raise BadInputError(
                f"metadata.url = {settings.url!r}: the runs of {self._root} are in {before}, and their "
                "artifacts are recorded only there. Leave metadata.url as it was, or give another --root."
            )
        if known and self.was_moved() and Path(known.path, self.folder.name, _FILE).is_file():
            raise BadInputError(
                f"{self._root} is a copy of {known.path}: both would write the same runs into {known.url}. "
                f"Remove one of them, or {self.folder} and {self._artifacts}."
            )
        if settings.url is not None:
            _check_server(settings)

    def record(self, settings: MetadataConfig) -> None:
        """Records the database that the root uses, unless it has none or has recorded it already.

        The caller holds the root's lock.

        Args:
          settings: Metadata settings of the run, which `check` accepts.
        """
        if settings.url is not None and self.server() is None:
            self._write(ServerPlace(settings.url, f"r{uuid.uuid4().hex[:8]}", str(self._root)))

    def was_moved(self) -> bool:
        """Returns whether the root may be somewhere else than the paths of its artifacts say."""
        place = self.server()
        return place is None or place.path != str(self._root)

    def note_move(self) -> None:
        """Records that the root was moved; call it after the artifacts' paths were corrected."""
        place = self.server()
        if place is not None and place.path != str(self._root):
            self._write(replace(place, path=str(self._root)))

    def connection_config(self, settings: MetadataConfig | None = None) -> Any:
        """Returns the connection settings of ML Metadata.

        Args:
          settings: Metadata settings of the run. Default: those recorded in the root, and the password of
            the environment.
        """
        from ml_metadata.proto import metadata_store_pb2

        place = self.server()
        if settings is None:
            settings = MetadataConfig(url=place.url if place else None)
        if settings.url is not None:
            return _server_config(settings)
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = str(self.sqlite_file)
        config.sqlite.connection_mode = (
            metadata_store_pb2.SqliteMetadataSourceConfig.READWRITE_OPENCREATE
        )
        return config

    def open(self, settings: MetadataConfig | None = None) -> "ml_metadata.MetadataStore":
        """Returns the store of an existing root.

        Args:
          settings: Metadata settings of the run. Default: those recorded in the root.
        """
        import ml_metadata

        return ml_metadata.MetadataStore(self.connection_config(settings))

    def _write(self, place: ServerPlace) -> None:
        atomic_files.write(self.folder / _FILE, json.dumps(asdict(place)))


def _server_config(settings: MetadataConfig) -> Any:
    from ml_metadata.proto import metadata_store_pb2

    config = metadata_store_pb2.ConnectionConfig()
    for name, value in settings.mysql().items():
        setattr(config.mysql, name, value)
    config.retry_options.max_num_retries = _RETRIES
    return config


def _check_server(settings: MetadataConfig) -> None:
    import ml_metadata
    from ml_metadata import errors

    config = _server_config(settings)
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
