import pytest

from pipelines.config.lineage import LineageConfig
from pipelines.config.load import load_config
from pipelines.config.tfx_pipeline import load_tfx_pipeline_config
from pipelines.errors import BadInputError


def test_without_the_section_there_are_no_events():
    assert load_config(data="d.csv", label="y").lineage == LineageConfig(openlineage=None, namespace=None)


@pytest.mark.parametrize("receiver", ["file", "http://marquez:5000", "https://h.example/a?b=c"])
def test_events_go_to_a_file_or_an_address(receiver):
    settings = (f"lineage.openlineage={receiver}", "lineage.namespace=shop")
    expected = LineageConfig(openlineage=receiver, namespace="shop")
    assert load_config(data="d.csv", label="y", settings=settings).lineage == expected
    config = load_tfx_pipeline_config(None, "p.py", {}, {}, settings)
    assert config.lineage == expected


@pytest.mark.parametrize("receiver", ["files", "kafka://h:9092", "http://", "http://h:port", "http://h:0"])
def test_what_is_neither_is_refused(receiver):
    with pytest.raises(BadInputError, match=r'lineage\.openlineage.*give "file", or an address such as'):
        load_config(data="d.csv", label="y", settings=(f"lineage.openlineage={receiver}",))


def test_an_address_with_a_password_is_refused():
    setting = "lineage.openlineage=https://ann:SECRET@h.example"
    with pytest.raises(BadInputError, match="OPENLINEAGE_API_KEY") as raised:
        load_config(data="d.csv", label="y", settings=(setting,))
    assert "SECRET" not in str(raised.value)
