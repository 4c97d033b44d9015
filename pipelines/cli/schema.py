"""`schema show` and `schema accept`."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.cli.options import DEFAULT_ROOT, RootOption, existing
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.root.schema.root_schema import RootSchema

app = typer.Typer(help="Show or update the schema that new data are validated against.", no_args_is_help=True)


@app.command()
def show(
    root: RootOption = DEFAULT_ROOT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Print the root's schema: columns, origin, and whether it was edited."""
    from pipelines.errors import BadInputError
    from pipelines.root.schema.table import schema_columns, schema_json, schema_lines

    _check_has_schema(existing(root))
    stored = root.schema.read()
    if stored is None:
        raise BadInputError(
            f"There is no schema in {root}: the first run that is pushed writes {root.schema.file}."
        )
    columns = schema_columns(stored.schema)
    facts = _facts(root, stored)
    if as_json:
        print(json.dumps({**facts, "columns": schema_json(columns)}, indent=1))
        return
    print("\n".join([*_fact_lines(facts), "", *schema_lines(columns)]))


@app.command()
def accept(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Default: the newest run whose data were validated.")
    ] = None,
    root: RootOption = DEFAULT_ROOT,
) -> None:
    """Make the schema and the statistics of a run the reference for new data.

    Use it if a run stopped because of its data, or warned about them, although the data are correct.
    Prints the changes.
    """
    from pipelines.root.schema.acceptance import accept_schema

    _check_has_schema(existing(root))
    accepted = accept_schema(root, run_id)
    print("\n".join([f"accepted: run {accepted.run_id}", *accepted.lines]))


def _check_has_schema(root: Root) -> None:
    from pipelines.config.load import is_of_tfx_pipeline
    from pipelines.errors import BadInputError

    newest = root.records.newest()
    if newest and is_of_tfx_pipeline(newest.config):
        raise BadInputError(
            f"{root} has no schema: its runs are of the TFX pipeline {newest.name!r}, which makes its own "
            f"schema (SchemaGen) or imports one (ImportSchemaGen). See {root.artifacts}."
        )


def _facts(root: Root, stored: "RootSchema") -> dict[str, Any]:
    origin = stored.origin
    newest = root.records.newest()
    own = newest.validated_config().schema_.path if newest else None
    return {
        "file": str(root.schema.file),
        "run_id": origin.run_id if origin else None,
        "written": origin.written if origin else None,
        "accepted": bool(origin and origin.accepted_for is not None),
        "edited": stored.is_edited,
        "compared_with_run": root.schema.accepted_run(stored) or None,
        "serving_version": root.versions.serving(),
        "path_of_newest_run": own,
    }


def _fact_lines(facts: dict[str, Any]) -> list[str]:
    how = "accepted" if facts["accepted"] else "stored when its model was pushed"
    origin = f"run {facts['run_id']}, {how} on {facts['written']}"
    if facts["run_id"] is None:
        origin = "not known"
    compared = f"run {facts['compared_with_run']}" if facts["compared_with_run"] else "no run"
    if not facts["compared_with_run"] and facts["serving_version"]:
        compared = f"version {facts['serving_version']}, the live version"
    lines = [
        f"schema         {facts['file']}",
        f"from           {origin}{'; edited since' if facts['edited'] else ''}",
        f"compared with  the data of {compared}",
    ]
    if facts["path_of_newest_run"]:
        lines.append(
            f"! not used by the newest run: its schema.path = {facts['path_of_newest_run']!r} overrides it"
        )
    return lines
