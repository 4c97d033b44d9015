"""The schema of a root: kept from its first pushed run, in a file to read and to edit.

It is written before the push, next to `ROOT/schema`, and takes effect once the version exists: a run that is
killed around its push neither loses the schema nor leaves one of a model that was not pushed.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines import atomic_files
from pipelines.data.formats.cell_format import format_of_column
from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import BadInputError, DamagedFileError
from pipelines.root.records import utc_now
from pipelines.root.schema.text import parse_schema, read_bytes, schema_text
from pipelines.root.versions import Versions

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0.schema_pb2 import Schema

_FOLDER, _PENDING = "schema", ".schema-"
_FILE, _ORIGIN, _PREVIOUS = "schema.pbtxt", "origin.json", "previous.pbtxt"
_COMMENTS = (
    "The schema of this root: new data are validated against it. It may be edited.",
    "`estimator-pipelines schema show` prints it, `schema accept` takes that of new data.",
)


@dataclass(frozen=True)
class SchemaOrigin:
    run_id: str  # Id of the run whose data it was made from, or whose data were accepted
    written: str  # UTC, ISO 8601
    sha256: str  # Hash of the file as it was written; a different hash means that it was edited
    kinds: Mapping[str, str] = field(default_factory=dict)  # Kind of each column in that run
    # Format of columns whose numbers `float` cannot read.
    number_formats: Mapping[str, NumberFormat] = field(default_factory=dict)
    # Version that was served when the run was accepted; new data are compared with the run's as
    # long as it is served. Empty if none was served; None if the run was pushed, not accepted.
    accepted_for: str | None = None
    # Highest number of the root's runs when the run was accepted; 0 if an earlier version of this
    # program wrote the file.
    newest_number: int = 0


@dataclass(frozen=True)
class RootSchema:
    schema: "Schema"  # Content of the file, edited or not
    fingerprint: str  # Hash of the file
    origin: SchemaOrigin | None = None  # Origin of the schema; None if unknown

    @property
    def is_edited(self) -> bool:
        """True if the file was changed after it was written."""
        return self.origin is not None and self.origin.sha256 != self.fingerprint

    @property
    def types(self) -> dict[str, str]:
        """`INT`, `FLOAT` or `BYTES` by column; an empty text for a column without values so far."""
        from components.example_validator.allowed import Allowed

        allowed = Allowed(self.schema)
        return {
            item.name: "" if item.lifecycle_stage else allowed.schema_type(item.name)
            for item in self.schema.feature
        }


class SchemaFolder:
    """The schema of a root, in `ROOT/schema`, and next to it those that runs have prepared."""

    def __init__(self, root: Path, versions: Versions):
        self._root = root
        self._versions = versions
        self._folder = root / _FOLDER
        self.file = self._folder / _FILE

    def read(self) -> RootSchema | None:
        """Returns the schema; None before the root's first push."""
        pushed = (folder for folder, run_id in self._pending() if self._has_pushed(run_id))
        for folder in (self._folder, *pushed):
            file = folder / _FILE
            if not file.is_file():
                continue
            content = read_bytes(file)
            schema = parse_schema(
                content,
                str(file),
                "Correct the line; or remove the file, and the next pushed run writes another.",
            )
            return RootSchema(schema, _sha256(content), _read_origin(folder) or self.origin())
        return None

    def folders(self) -> list[Path]:
        """Returns the folder of the schema, and those of prepared ones."""
        return [self._folder, *(folder for folder, _ in self._pending())]

    def origin(self) -> SchemaOrigin | None:
        """Returns the origin of the schema; None if it is unknown, or there is no schema."""
        return _read_origin(self._folder)

    def accepted_run(self, schema: RootSchema | None) -> str:
        """Returns the run that was accepted in place of the served version's data; empty for none."""
        origin = schema.origin if schema else None
        if origin is None or origin.accepted_for != (self._versions.serving() or ""):
            return ""
        return origin.run_id

    def prepare(self, run_id: str, schema: "Schema", columns: Iterable[Mapping[str, Any]]) -> None:
        """Writes the schema of a run next to the root's, to be used once the run has pushed."""
        folder = self._root / f"{_PENDING}{run_id}"
        folder.mkdir(exist_ok=True)
        _write(folder, schema, run_id, columns, None)

    def adopt(self, *kept: str) -> None:
        """Adopts the schema prepared by a run that has pushed, if the root has none; removes all others."""
        for folder, prepared_by in list(self._pending()):
            if self._has_pushed(prepared_by):
                if not self.file.exists() and (folder / _FILE).is_file():
                    self._folder.mkdir(exist_ok=True)
                    for name in (_ORIGIN, _FILE):  # the schema last: it takes effect then
                        if (folder / name).exists():
                            (folder / name).replace(self._folder / name)
                atomic_files.remove_below(self._root, folder)
            elif prepared_by not in kept:
                atomic_files.remove_below(self._root, folder)

    def replace(
        self, schema: "Schema", run_id: str, columns: Iterable[Mapping[str, Any]], newest_number: int = 0
    ) -> None:
        """Replaces the schema, and makes the data of a run those to compare with.

        The previous file is kept as `previous.pbtxt`. A killed process leaves the previous or the new schema;
        repeating the call completes it.
        """
        self._folder.mkdir(exist_ok=True)
        if self.file.is_file():
            atomic_files.write(self._folder / _PREVIOUS, self.file.read_bytes())
        accepted_for = self._versions.serving() or ""
        _write(self._folder, schema, run_id, columns, accepted_for, newest_number)

    def _pending(self) -> Iterator[tuple[Path, str]]:
        """Yields the folders of prepared schemas with the ids of their runs, oldest first."""
        for folder in sorted(self._root.glob(f"{_PENDING}*")):
            yield folder, folder.name.removeprefix(_PENDING)

    def _has_pushed(self, run_id: str) -> bool:
        return self._versions.version_of_run(run_id) is not None


def _write(
    folder: Path,
    schema: "Schema",
    run_id: str,
    columns: Iterable[Mapping[str, Any]],
    accepted_for: str | None,
    newest_number: int = 0,
) -> None:
    content = schema_text(schema, *_COMMENTS).encode()
    columns = list(columns)
    kinds = {column["name"]: column["kind"] for column in columns}
    formats = {
        column["name"]: cell_format.number
        for column in columns
        if (cell_format := format_of_column(column)) and cell_format.number
    }
    digest = _sha256(content)
    origin = SchemaOrigin(run_id, utc_now(), digest, kinds, formats, accepted_for, newest_number)
    atomic_files.write(folder / _ORIGIN, json.dumps(asdict(origin), indent=1))
    atomic_files.write(folder / _FILE, content)


def _read_origin(folder: Path) -> SchemaOrigin | None:
    file = folder / _ORIGIN
    if not file.is_file():
        return None
    try:
        return atomic_files.read_model(file, SchemaOrigin)
    except DamagedFileError as error:
        raise BadInputError(
            f"{file} is not what a run wrote ({error.reason}). Restore it; or remove it, and new data are "
            "compared with those of the live version."
        ) from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
