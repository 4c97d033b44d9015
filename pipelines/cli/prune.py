"""`prune`: removal of old runs and their files."""

import json
from functools import partial
from typing import Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, EXIT_FAILED, RootOption, existing, refuse

_limit = partial(typer.Option, metavar="N", min=1)


def prune_command(
    root: RootOption = DEFAULT_ROOT,
    runs: Annotated[
        int | None, _limit(help="Keep the records, reports and logs of the newest N runs.")
    ] = None,
    days: Annotated[int | None, _limit(help="Keep those of the last N days.")] = None,
    artifacts: Annotated[int | None, _limit(help="Keep the artifacts of the newest N runs.")] = None,
    checkpoints: Annotated[
        int | None, _limit(help="Keep the training directories of the newest N runs.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed without removing it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Delete old runs and artifacts, and list them with reasons.

    The retention rules of the newest run's configuration decide what stays; options override them. The
    live version, and everything that is still needed, always stays.
    """
    from pipelines.runs.retention import prune

    limits = {"runs": runs, "days": days, "artifacts": artifacts, "checkpoints": checkpoints}
    existing(root)
    try:
        removals = prune.prune_command(root, limits, dry_run)
    except OSError as error:
        refuse(f"{error}. The rest was not removed; run prune again", EXIT_FAILED)
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
