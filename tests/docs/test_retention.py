"""The page on retention: its examples are valid and complete."""

import pathlib
import re

import tomllib

from pipelines.config.load import load_config
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.retention import RetentionConfig

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_a_configuration_is_valid(tmp_path):
    (block,) = blocks("retention.md", "toml")
    (tmp_path / "c.toml").write_text(f'[data]\npath = "d.csv"\nlabel = "y"\n{block}')
    config = load_config(tmp_path / "c.toml")
    assert isinstance(config, PipelineConfig)
    assert set(tomllib.loads(block)) <= set(config.model_dump())


def test_every_key_is_shown_or_named():
    assert set(tomllib.loads(blocks("retention.md", "toml")[0])["retention"]) == set(
        RetentionConfig.model_fields
    )


def test_the_commands_are_those_of_prune(warm_command, tmp_path):
    (block,) = blocks("retention.md", "sh")
    for line in block.splitlines():
        words = line.split("#")[0].split()
        assert words[:2] == ["estimator-pipelines", "prune"]
        # There is no such root here: the options are known, and the answer is its.
        result = warm_command(*words[1:], cwd=tmp_path)
        assert (result.returncode, "There is no folder" in result.stderr) == (2, True), line
