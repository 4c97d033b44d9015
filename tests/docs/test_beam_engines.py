"""The guide's configurations and commands are valid; tests/flink and tests/spark run two of the commands."""

import itertools
import re
import shlex
from pathlib import Path

import pytest

from pipelines.beam.runners import find_runner
from pipelines.config.load import load_config
from pipelines.errors import BadInputError

GUIDE = (Path(__file__).parents[2] / "docs" / "beam-engines.md").read_text()


def blocks(language):
    """Returns the code blocks of a language, without their indentation."""
    matches = re.findall(rf"^( *)```{language}\n(.*?)^ *```", GUIDE, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in matches]


def commands():
    """Returns the words of each `estimator-pipelines run`."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.startswith("estimator-pipelines run")]


@pytest.mark.parametrize("text", blocks("toml"))
def test_a_configuration_is_valid(text, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(f'[data]\npath = "d.csv"\nlabel = "y"\n{text}')
    assert load_config(config_file=file).beam.has_engine


def test_there_are_configurations_of_three_engines():
    assert len(blocks("toml")) == 3


@pytest.mark.parametrize("words", commands())
def test_a_command_names_an_engine(words):
    settings = [word for before, word in itertools.pairwise(words) if before == "--set"]
    beam = load_config(data="d.csv", label="y", settings=settings).beam
    assert words[words.index("--runner") + 1] == "beam"
    find_runner("beam").check(beam)


def test_there_is_a_command_for_processes_one_for_flink_and_one_for_spark():
    engines = ["direct.workers", "runner=flink", "runner=spark"]
    for words, engine in zip(commands(), engines, strict=True):
        assert any(engine in word for word in words)


def test_direct_num_workers_alone_is_refused():
    with pytest.raises(BadInputError, match="alone starts no processes"):
        load_config(data="d", label="y", settings=["beam.args=['--direct_num_workers=2']"])
