"""`prune`. Heavy imports happen inside the command."""

import json
from typing import Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, EXIT_FAILED, RootOption, existing, refuse

_Number = typer.Option(metavar="N", min=1, help="Overrides the newest run's configuration.")


def prune_command(
    root: RootOption = DEFAULT_ROOT,
    runs: Annotated[int | None, _Number] = None,
    days: Annotated[int | None, _Number] = None,
    artifacts: Annotated[int | None, _Number] = None,
    checkpoints: Annotated[int | None, _Number] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed without removing it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Remove runs and artifacts that no rule keeps and nothing needs, and list them with reasons.

    The rules are those of the newest run's configuration; options override them.
    """
    from pipelines.runs.retention import prune

    limits = {"runs": runs, "days": days, "artifacts": artifacts, "checkpoints": checkpoints}
    existing(root)
    try:
        removals = prune.prune_command(root, limits, dry_run)
    except OSError as error:
        refuse(f"{error}; the rest was not removed; run prune again", EXIT_FAILED)
    if as_json:
        fields = {
            "root": str(root),
            "dry_run": dry_run,
            "bytes": sum(removal.size_bytes for removal in removals),
            "removed": [removal.as_json() for removal in removals],
        }
        print(json.dumps(fields, indent=1))
        return
    print("\n".join([*prune.lines(root, removals), prune.summary(removals, dry_run)]))
