"""`lineage`: from a version to its run, data, code and parameters; from a span to the versions."""

import json
from typing import Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, RootOption, existing


def lineage_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[VERSION|RUN_ID]", help="Default: the live version.", show_default=False),
    ] = None,
    span: Annotated[
        str | None, typer.Option("--span", metavar="N|DATE", help="Show every run that read this span.")
    ] = None,
    root: RootOption = DEFAULT_ROOT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Show where a version came from (run, data, code, parameters), or which runs read a span."""
    from pipelines.errors import BadInputError
    from pipelines.root.lineage import find_lineage, lineage_lines

    if name is not None and span is not None:
        raise BadInputError(f"Give a version, a run, or --span. Received: {name} --span {span}")
    lineages = find_lineage(existing(root), name, span)
    if as_json:
        print(json.dumps(lineages, indent=1, allow_nan=False))
        return
    print("\n\n".join("\n".join(lineage_lines(lineage)) for lineage in lineages))
