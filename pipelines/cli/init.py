"""`init`: makes a project of the user's own."""

import importlib
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
_EXAMPLES = ("keras_model", "recommender", "run_fn", "tpu")
_EXAMPLE_DATA = "data.csv"


def init_command(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", parser=given_path, help="Project folder, which may exist already."),
    ] = Path("."),
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the pipeline and its module. Default: the folder's.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="FILE_OR_DIR",
            help="Your own data: write a configuration for them, without a module.",
        ),
    ] = None,
    label: Label = None,
    example: Annotated[
        str | None,
        typer.Option(
            "--example",
            metavar="NAME",
            help=f"Example to start from, instead of the taxi trips: {', '.join(_EXAMPLES)}.",
        ),
    ] = None,
) -> None:
    """Create a project: a configuration, a module with a test, and generated data to try them with.

    With --data and --label, the configuration is for your data, and no module is written. With --example,
    the project is a copy of that example. Existing files are never overwritten.
    """
    from pipelines.errors import BadInputError

    if label is not None and data is None:
        raise BadInputError(f"--label {label} is a column of --data, which is missing. Give both.")
    if example is not None and data is not None:
        raise BadInputError("--example has its own data. Leave out --data or --example.")
    if folder.is_file():
        raise BadInputError(f"{folder} is a file. Give a folder.")
    name = _checked_name(name, folder)
    if example is not None:
        texts, made = _example_texts(example, name), _EXAMPLE_DATA
    elif data is None:
        texts, made = _texts("project", name), _TRIPS
    else:
        texts, made = _texts("own_data", name), _CONFIG
    if present := sorted(file for file in [*texts, made] if (folder / file).exists()):
        raise BadInputError(
            f"{folder} already has {', '.join(present)}, which is not overwritten. Give another folder."
        )
    if data is not None:
        _write_plan(folder, name, data, label)
    elif example is not None:
        folder.mkdir(parents=True, exist_ok=True)
        generate = importlib.import_module(f"pipelines.examples.{example}.generate")
        generate.write_csv(folder / made)
    else:
        from pipelines.examples.taxi.generate import write_csv

        folder.mkdir(parents=True, exist_ok=True)
        write_csv(folder / made, _ROWS, _SEED)
    for file, text in texts.items():
        with (folder / file).open("x", encoding="utf-8") as stream:
            stream.write(text)
    print(f"written: {', '.join(sorted([*texts, made]))}")
    go = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    print(f"next: {go}estimator-pipelines run --config {_CONFIG}")


def _write_plan(folder: Path, name: str, data: str, label: str | None) -> None:
    from pipelines.config.load import load_config
    from pipelines.runs.plan.description import describe_plan, write_plan_file

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


def _example_texts(example: str, name: str) -> dict[str, str]:
    from components.nearest import nearest_first
    from pipelines.errors import BadInputError

    if example not in _EXAMPLES:
        nearest = ", ".join(nearest_first(example, _EXAMPLES))
        raise BadInputError(f"--example {example}: there is no such example. Examples: {nearest}.")
    examples = Path(__file__).parents[1] / "examples"
    files = {
        ".gitignore": examples / "project" / "gitignore",
        "generate.py": examples / example / "generate.py",
        "model.py": examples / example / "model.py",
        _CONFIG: examples / example / f"{example}.toml",
    }
    texts = {file: path.read_text(encoding="utf-8") for file, path in files.items()}
    texts[_CONFIG] = texts[_CONFIG].replace(f'name = "{example}"', f'name = "{name}"')
    return texts


def _checked_name(requested: str | None, folder: Path) -> str:
    """Returns the name of a project, by which its module can be imported."""
    import importlib.util
    import keyword

    from pipelines.errors import BadInputError

    name = re.sub(r"\W", "_", folder.resolve().name) if requested is None else requested
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is None or keyword.iskeyword(name):
        fault = "it has to be a name that Python can import: letters, digits and _"
    elif name in ("components", "estimator_core", "pipelines"):
        fault = "it is a package of estimator-pipelines, which a module of this name would hide"
    elif name in sys.stdlib_module_names:
        fault = "it is a module of Python's standard library, which a module of this name would hide"
    else:
        spec = importlib.util.find_spec(name)
        origin = spec.origin if spec else None
        if origin is None or Path(origin).resolve() == (folder / f"{name}.py").resolve():
            return name
        fault = f"it is an installed module: {origin}"
    source = f"--name {requested}" if requested is not None else f"The name of the folder, {name}"
    raise BadInputError(f"{source}: {fault}. Give another --name, such as my_{name.strip('_')}.")
