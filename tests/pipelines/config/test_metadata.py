import json

import pytest

from pipelines.config.load import load_config
from pipelines.config.metadata import PASSWORD_VARIABLE, MetadataConfig
from pipelines.errors import BadInputError


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("mysql://pipe:s3cret@db.example:3307/mlmd", "s3cret"),
        ("mysql://pipe:with%40at@db.example:3307/mlmd", "with@at"),
        ("mysql://pipe:a:b@c@db.example:3307/mlmd", "a:b@c"),
    ],
)
def test_a_password_in_the_url_is_taken_out(url, password):
    config = load_config(data="d.csv", label="y", settings=(f"metadata.url={url}",))
    assert config.metadata.url == "mysql://pipe@db.example:3307/mlmd"
    assert config.metadata.mysql() == {
        "host": "db.example", "port": 3307, "database": "mlmd", "user": "pipe", "password": password,
    }  # fmt: skip
    for text in (repr(config), str(config), json.dumps(config.model_dump(mode="json"))):
        assert password not in text
    assert "password" not in config.model_dump(mode="json")["metadata"]


def test_the_password_of_the_environment_is_the_last_resort(monkeypatch):
    monkeypatch.setenv(PASSWORD_VARIABLE, "of the environment")
    place = MetadataConfig(url="mysql://pipe@db/mlmd")
    assert (place.mysql()["password"], place.mysql()["port"]) == ("of the environment", 3306)
    given = MetadataConfig.model_validate({"url": "mysql://pipe:other@db/mlmd", "password": "own"})
    assert given.mysql()["password"] == "own"
    monkeypatch.delenv(PASSWORD_VARIABLE)
    assert place.mysql()["password"] == ""


def test_the_default_is_a_file():
    assert load_config(data="d.csv", label="y").metadata == MetadataConfig()
    assert MetadataConfig().url is None


@pytest.mark.parametrize(
    "url",
    [
        "postgres://pipe@db/mlmd", "mysql://db/mlmd", "mysql://pipe@db", "mysql://pipe@/mlmd", "mlmd",
        "mysql://pipe@db:x/mlmd", "mysql://pipe@db/mlmd/more", "mysql://pipe@db/mlmd?ssl=1",
    ],
)  # fmt: skip
def test_another_url_is_refused(url):
    with pytest.raises(
        BadInputError, match=r"metadata.url = .*give mysql://user@host:3306/database"
    ):
        load_config(data="d.csv", label="y", settings=(f"metadata.url={url}",))
