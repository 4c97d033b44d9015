"""The page on retention shows every key, in a configuration that is valid."""

import tomllib

from pipelines.config.load import load_config
from pipelines.config.retention import RetentionConfig
from tests.docs.markdown import blocks, read


def test_every_key_is_shown_in_a_configuration_that_is_valid(tmp_path):
    (block,) = blocks(read("docs/retention.md"), "toml")
    (tmp_path / "c.toml").write_text(f'[data]\npath = "d.csv"\nlabel = "y"\n{block}')
    sections = tomllib.loads(block)
    assert set(sections) <= set(load_config(tmp_path / "c.toml").model_dump())
    assert set(sections["retention"]) == set(RetentionConfig.model_fields)
