import pytest

from pipelines.config.load import load_config
from pipelines.config.retention import RetentionConfig
from pipelines.errors import BadInputError


def test_a_configuration_without_it_removes_nothing():
    assert load_config(data="d.csv", label="y").retention.is_empty
    assert not RetentionConfig(days=30).is_empty


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("retention.run=3", "retention.run = 3: there is no such key. Did you mean runs?"),
        ("retention.days=0", "retention.days = 0: input should be greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_named(setting, message):
    with pytest.raises(BadInputError) as error:
        load_config(data="d.csv", label="y", settings=(setting,))
    assert message in str(error.value)


def test_more_checkpoints_than_artifacts_are_refused():
    with pytest.raises(BadInputError, match="checkpoints = 4 is above artifacts = 3"):
        load_config(data="d.csv", label="y", settings=("retention.artifacts=3", "retention.checkpoints=4"))
    assert RetentionConfig(artifacts=3, checkpoints=3).checkpoints == 3
