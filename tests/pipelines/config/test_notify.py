import pytest

from pipelines.config.load import load_config
from pipelines.errors import BadInputError


@pytest.fixture
def load(tmp_path):
    def load(text):
        file = tmp_path / "a.toml"
        file.write_text(f'[data]\npath = "a.csv"\nlabel = "y"\n[notify]\n{text}')
        return load_config(file)

    return load


def test_the_section_names_channels_and_events(load):
    notify = load('command = "mail me"\non = ["failed", "pushed"]\ntimeout_secs = 3').notify
    assert (notify.command, notify.on, notify.timeout_secs) == ("mail me", ("failed", "pushed"), 3)
    assert notify.has_receiver
    events = ("failed", "held", "not_blessed", "drifted", "missed")
    assert load('webhook = "https://example.com/x"').notify.on == events
    assert load('webhook_env = "HOOK"').notify.has_receiver
    assert not load("").notify.has_receiver


def test_addresses_are_in_no_record(load):
    config = load('webhook = "https://example.com/hidden-path"')
    assert "hidden-path" not in config.model_dump_json()
    assert "hidden-path" not in str(config.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('on = ["fialed"]', "notify.on.0 = 'fialed'"),
        ('command = " "', "notify.command.*name a program"),
        ('webhook = "example.com"', "notify.webhook.*give an address"),
        ('webhook_env = "$HOOK"', "notify.webhook_env"),
        ("timeout_secs = 0", "notify.timeout_secs"),
        ('comand = "x"', "Did you mean command"),
    ],
)
def test_what_it_refuses(load, text, message):
    with pytest.raises(BadInputError, match=message):
        load(text)


@pytest.mark.parametrize(
    "text",
    ['webhook = "SECRET"', 'comand = "SECRET"', 'webhook_env = "https://a/SECRET"', "webhook = ['SECRET']"],
)
def test_what_it_refuses_is_not_repeated(load, text):
    with pytest.raises(BadInputError) as raised:
        load(text)
    assert "SECRET" not in str(raised.value)
