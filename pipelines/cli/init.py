"""`init`: makes a project of the user's own."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import Label, given_path

_CONFIG = "pipeline.toml"
_NAME = "project_name"
"""Placeholder in the files of `examples`, in their names and their text."""

_TRIPS, _ROWS, _SEED = "data/trips.csv", 6_000, 1


def init_command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", parser=given_path, help="Folder of the project; it may exist."
        ),
    ] = Path("."),
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the pipeline and its module. Default: the folder's."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="CSV_OR_DIR",
            help="Your own data: a configuration for them, without a module.",
        ),
    ] = None,
    label: Label = None,
) -> None:
    """Make a project: a configuration, a module with a test, and generated data to try them with.

    With --data and --label, the configuration is for your data and has no module. No file is overwritten.
    """
    from pipelines.errors import BadInputError

    if label is not None and data is None:
        raise BadInputError(f"--label {label} is a column of --data, which is missing. Give both.")
    if folder.is_file():
        raise BadInputError(f"{folder} is a file. Give a folder.")
    name = _checked_name(name, folder)
    texts = _texts("project" if data is None else "own_data", name)
    _refuse_existing(folder, [*texts, *([_TRIPS] if data is None else [_CONFIG])])
    if data is None:
        from pipelines.examples.taxi.generate import write_csv

        folder.mkdir(parents=True, exist_ok=True)
        write_csv(folder / _TRIPS, _ROWS, _SEED)
    else:
        _write_plan(folder, name, data, label)
    for file, text in texts.items():
        with (folder / file).open("x", encoding="utf-8") as stream:
            stream.write(text)
    print(f"written: {', '.join(sorted([*texts, _TRIPS if data is None else _CONFIG]))}")
    go = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    print(f"next: {go}estimator-pipelines run --config {_CONFIG}")


def _write_plan(folder: Path, name: str, data: str, label: str | None) -> None:
    from pipelines.config.load import load_config
    from pipelines.plan.description import describe_plan, write_plan_file

    config = load_config(None, data, label, (f"name={name}",))
    plan, lines = describe_plan(config)
    print("\n".join(lines), file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    write_plan_file(config, plan, folder / _CONFIG)


def _texts(example: str, name: str) -> dict[str, str]:
    """Returns the text of each file of a project, by its name."""
    examples = Path(__file__).parents[1] / "examples"
    files = [examples / "project" / "gitignore"]
    files += sorted(path for path in (examples / example).iterdir() if path.is_file())
    return {
        file.name.replace(_NAME, name).replace("gitignore", ".gitignore"): file.read_text(
            encoding="utf-8"
        ).replace(_NAME, name)
        for file in files
    }


def _refuse_existing(folder: Path, files: list[str]) -> None:
    from pipelines.errors import BadInputError

    present = sorted(file for file in files if (folder / file).exists())
    if present:
        raise BadInputError(
            f"{folder} has {', '.join(present)}, and nothing is overwritten. Give another folder."
        )


def _checked_name(given: str | None, folder: Path) -> str:
    """Returns the name of a project, by which its module can be imported."""
    import importlib.util
    import keyword

    from pipelines.errors import BadInputError

    name = re.sub(r"\W", "_", folder.resolve().name) if given is None else given
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is None or keyword.iskeyword(name):
        fault = "it has to be a name that Python can import: letters, digits and _"
    elif name in ("components", "estimator_core", "pipelines"):
        fault = "it is a package of estimator-pipelines, which a module of this name would hide"
    elif name in sys.stdlib_module_names:
        fault = "it is a module of Python, which a module of this name would hide"
    else:
        found = importlib.util.find_spec(name)
        origin = found.origin if found else None
        if origin is None or Path(origin).resolve() == (folder / f"{name}.py").resolve():
            return name
        fault = f"it is an installed module: {origin}"
    source = f"--name {given}" if given is not None else f"The name of the folder, {name}"
    raise BadInputError(f"{source}: {fault}. Give another --name, such as my_{name.strip('_')}.")
