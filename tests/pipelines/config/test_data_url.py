import pytest

from pipelines.config.data_url import ExpandedUrl, is_url
from pipelines.config.load import load_config
from pipelines.errors import BadInputError


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:s3cret@db/shop",
        "https://s3cret@example.com/trips.csv",
        "https://example.com/trips.csv?rows=5&X-Amz-Signature=s3cret",
        "https://example.com/trips.csv?api_key=s3cret",
        "mssql+pyodbc:///?odbc_connect=SERVER%3Ddb%3BPWD%3Ds3cret",
        "https://reader:s3cret@[::1/trips.csv",
    ],
)
@pytest.mark.parametrize("key", ["data.path", "data.pth", "pusher.mlflow"])
def test_no_configuration_has_a_secret_and_no_message_repeats_it(url, key):
    with pytest.raises(BadInputError, match=key) as refused:
        load_config(data="d.csv", label="y", settings=[f"{key}={url}"])
    assert "s3cret" not in str(refused.value)


def test_a_user_a_query_and_the_name_of_a_variable_are_no_secrets(tmp_path):
    urls = {
        "s3://bucket/2026/trips.csv": "trips",
        "https://example.com/export?format=csv&rows=5": "export-format-csv-rows-5",
        "postgresql://reader@db:5432/shop": "shop",
        "postgresql://reader:${DB_PASSWORD}@db/shop": "shop",
        "https://example.com/trips.csv?token=${TOKEN}": "trips",
        "${DATABASE_URL}": "DATABASE_URL",
    }
    for url, name in urls.items():
        file = tmp_path / "c.toml"
        file.write_text(f'[data]\npath = "{url}"\nlabel = "y"\n')
        config = load_config(file)
        assert (config.data.path, config.name) == (url, name)
    for path in ("C:\\trips.csv", "a/s3://b", "./${A}.csv"):
        assert not is_url(path)


def test_a_query_needs_a_database():
    with pytest.raises(BadInputError, match=r"data\.query.*data\.path is the database"):
        load_config(data="d.csv", label="y", settings=["data.query=SELECT 1"])


def test_variables_are_expanded_and_their_values_are_hidden(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "p@ss/w%rd")
    monkeypatch.setenv("DB_HOST", "db.example.com:5432")
    url = ExpandedUrl("postgresql://reader:${DB_PASSWORD}@${DB_HOST}/shop")
    assert url.value == "postgresql://reader:p%40ss%2Fw%25rd@db.example.com:5432/shop"
    message = f"no answer from {url.value} for p@ss/w%rd, at db.example.com:5432"
    assert url.hide_values(message) == (
        "no answer from postgresql://reader:${DB_PASSWORD}@${DB_HOST}/shop for ${DB_PASSWORD}, at ${DB_HOST}"
    )
    monkeypatch.setenv("DATABASE_URL", "mysql://root:geheim%21@db/shop?token=abc123")
    whole = ExpandedUrl("${DATABASE_URL}")
    assert whole.value == "mysql://root:geheim%21@db/shop?token=abc123"
    assert whole.hide_values(f"{whole.value} geheim! geheim%21 abc123") == "${DATABASE_URL} *** *** ***"
    monkeypatch.setenv("EMPTY", "")
    for name in ("EMPTY", "NOT_SET"):
        with pytest.raises(BadInputError, match=rf"s3://\$\{{{name}\}}/x needs the environment variable"):
            ExpandedUrl(f"s3://${{{name}}}/x")
