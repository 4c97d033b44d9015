"""The programs accept the commands, make targets and configurations of the docs."""

import importlib.util
import itertools
import re
import shlex

import pytest
import typer

from pipelines.cli.app import app
from pipelines.config.load import load_config
from tests.docs.markdown import NAMES, ROOT, blocks, commands, inline_code, read

COMMAND_LINE = typer.main.get_command(app)
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# Tokens that end the words of a command.
SHELL_WORDS = ("&", ";", "done", ">", "|")
# make's own options, and words other than targets that may follow `make`.
VARIABLE = re.compile(r"[A-Z_]+=.*")


def parse(words):
    """Parses the words after `estimator-pipelines`; raises the error they cause."""
    command, arguments = COMMAND_LINE, list(words)
    while hasattr(command, "commands"):
        if arguments[0].startswith("-"):  # an option of the command line itself
            assert arguments[0] in {option for parameter in command.params for option in parameter.opts}
            return
        command = command.commands[arguments.pop(0)]
    command.make_context("command", arguments)


def after(words, *start):
    """Returns the words of a command after these first ones, which may come late; None without them."""
    for index in range(len(words) - len(start) + 1):
        if tuple(words[index : index + len(start)]) == start:
            following = words[index + len(start) :]
            return list(itertools.takewhile(lambda word: word not in SHELL_WORDS, following))
    return None


def named_commands(name):
    """Returns the words of each command of a page, also of those within a sentence."""
    text = read(name)
    inline = [
        shlex.split(code) for code in inline_code(text) if re.match(r"python|make|estimator-pipelines ", code)
    ]
    return [words for words in [*commands(text), *inline] if "..." not in words]


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_takes_the_commands(name):
    for words in named_commands(name):
        arguments = after(words, "estimator-pipelines") or after(words, "-m", "pipelines")
        if arguments and arguments != ["run"]:
            parse(arguments)


@pytest.mark.parametrize("name", NAMES)
def test_options_in_sentences_exist(name):
    """Options such as `run --resume`."""
    for code in inline_code(read(name)):
        command, words = COMMAND_LINE, code.split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        if command is COMMAND_LINE:
            continue
        options = {option for parameter in getattr(command, "params", []) for option in parameter.opts}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0].rstrip(",") in options, code


@pytest.mark.parametrize("name", NAMES)
def test_modules_and_make_targets_exist(name):
    for words in named_commands(name):
        if words[0] == "make":
            for word in words[1:]:
                assert VARIABLE.fullmatch(word) or word in TARGETS, words
        elif "-m" in words:
            module = words[words.index("-m") + 1]
            assert importlib.util.find_spec(module), words


@pytest.mark.parametrize("name", NAMES)
def test_configurations_are_valid(name, tmp_path):
    for text in blocks(read(name), "toml"):
        file = tmp_path / "given.toml"
        file.write_text(text)
        settings = [
            f"data.{key}={value}"
            for key, value in (("path", "data.csv"), ("label", "y"))
            if not re.search(rf"^{key} = ", text.partition("[data]")[2].partition("\n[")[0], re.M)
        ]
        load_config(file, settings=settings)


@pytest.mark.parametrize(
    "words", ["runs --rot x", "schema accpt", "run --data", "rollback --to seven", "submit"]
)
def test_what_the_command_line_refuses_is_seen(words):
    with pytest.raises(Exception, match=r"."):
        parse(words.split())


def test_there_are_commands():
    named = [words for name in NAMES for words in named_commands(name)]
    assert sum("estimator-pipelines" in words for words in named) > 40
    assert sum(words[0] == "make" for words in named) > 15
