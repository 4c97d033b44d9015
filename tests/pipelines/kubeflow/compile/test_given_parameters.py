import pytest

from pipelines.config.toml import parse_named
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.given_parameters import typed_parameters

TYPES = {
    "data_path": "STRING", "train_steps": "NUMBER_INTEGER", "rate": "NUMBER_DOUBLE", "stops": "BOOLEAN",
}  # fmt: skip
DECLARED = {name: {"parameterType": kind} for name, kind in TYPES.items()}
SPECIFICATION = {"root": {"inputDefinitions": {"parameters": DECLARED}}}


def test_parameters_are_split_at_the_first_sign_if_there_is_one():
    assert parse_named(["a=b=c", "d="], "--param") == {"a": "b=c", "d": ""}
    for text in ("a", "=b"):
        with pytest.raises(BadInputError, match=f"Received: {text!r}"):
            parse_named([text], "--param")


def test_values_have_the_types_that_the_pipeline_declares():
    given = {"data_path": "7", "train_steps": "7", "rate": "1e-3", "stops": "true"}
    expected = {"data_path": "7", "train_steps": 7, "rate": 0.001, "stops": True}
    assert typed_parameters(SPECIFICATION, given) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("train_step", "7", "Did you mean train_steps"),
        ("train_steps", "7.5", "takes a whole number. Received: '7.5'"),
        ("train_steps", "true", "takes a whole number"),
        ("rate", "fast", "takes a number"),
        ("stops", "1", "takes true or false"),
    ],
)
def test_what_the_server_would_refuse_is_refused(name, text, message):
    with pytest.raises(BadInputError, match=message):
        typed_parameters(SPECIFICATION, {name: text})
