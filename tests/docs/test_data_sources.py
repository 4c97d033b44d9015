"""The configuration and the URLs of docs/data-sources.md."""

import re

from pipelines.config.data_url import is_url
from pipelines.config.load import load_config
from tests.docs.markdown import blocks, read

TEXT = read("docs/data-sources.md")


def test_the_configuration_and_the_urls_are_accepted(tmp_path):
    (configuration,) = blocks(TEXT, "toml")
    (tmp_path / "trips.toml").write_text(configuration)
    assert load_config(tmp_path / "trips.toml").data.query.startswith("SELECT ")
    urls = re.findall(r"`(\w+://[^`]+)`", TEXT)
    assert len(urls) == 6
    for url in urls:
        assert is_url(load_config(data=url, label="y").data.path)
