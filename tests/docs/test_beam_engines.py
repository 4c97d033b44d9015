"""The guide's configurations and commands are valid; tests/flink and tests/spark run two of the commands."""

import itertools

import pytest

from pipelines.beam.runners import find_runner
from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from tests.docs.markdown import blocks, commands, read

GUIDE = read("docs/beam-engines.md")


def test_there_are_configurations_of_three_engines(tmp_path):
    texts = blocks(GUIDE, "toml")
    assert len(texts) == 3
    for text in texts:
        (tmp_path / "c.toml").write_text(f'[data]\npath = "d.csv"\nlabel = "y"\n{text}')
        assert load_config(config_file=tmp_path / "c.toml").beam.has_engine


def test_there_is_a_command_for_processes_one_for_flink_and_one_for_spark():
    runs = [words for words in commands(GUIDE) if words[:2] == ["estimator-pipelines", "run"]]
    for words, engine in zip(runs, ["direct.workers", "runner=flink", "runner=spark"], strict=True):
        assert any(engine in word for word in words)
        settings = [word for before, word in itertools.pairwise(words) if before == "--set"]
        assert words[words.index("--runner") + 1] == "beam"
        find_runner("beam").check(load_config(data="d.csv", label="y", settings=settings).beam)


def test_direct_num_workers_alone_is_refused():
    with pytest.raises(BadInputError, match="alone starts no processes"):
        load_config(data="d", label="y", settings=["beam.args=['--direct_num_workers=2']"])
