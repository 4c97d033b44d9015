"""Requests that no program would send: the server refuses each, and goes on."""

import json
import random

import pytest

NAMES = (
    "instances", "inputs", "examples", "context", "signature_name", "id", "outputs", "parameters",
    "name", "shape", "datatype", "data", "b64", "x", "n", "city", "", "größe",
)  # fmt: skip
VALUES = (
    None, True, False, 0, 1, -1, 7, 2**63, -(2**63), 10**30, 0.5, 1e300, float("inf"), float("nan"),
    "", "x", "n", "Oslo", "FP32", "INT64", "BYTES", "AAAA", "\ud800", "\0", "serving_default",
    "serving_rows", "predict", "regression", "classification",
)  # fmt: skip
PATHS = (
    "/v1/models/sums:predict", "/v1/models/sums:classify", "/v1/models/sums:regress",
    "/v1/models/sums/versions/5:predict", "/v2/models/sums/infer",
)  # fmt: skip


def any_value(draw, depth=0):
    kind = draw.random()
    if depth > 4 or kind < 0.4:
        return draw.choice(VALUES)
    if kind < 0.65:
        return [any_value(draw, depth + 1) for _ in range(draw.randrange(4))]
    names = draw.sample(NAMES, draw.randrange(4))
    return {name: any_value(draw, depth + 1) for name in names}


def any_body(draw):
    """Returns a body that is likely to get past the first checks."""
    row = {name: any_value(draw, 4) for name in draw.sample(("x", "n", "city"), draw.randrange(1, 4))}
    tensor = {
        "name": draw.choice(("x", "n", "city")),
        "shape": draw.choice(([1], [1, 1], [2], any_value(draw))),
        "datatype": draw.choice(("FP32", "INT64", "BYTES", any_value(draw))),
        "data": draw.choice(([any_value(draw, 3)], any_value(draw))),
    }
    body = {
        draw.choice(("instances", "inputs", "examples")): draw.choice(
            ([row], row, [tensor], [any_value(draw)], any_value(draw))
        )
    }
    if draw.random() < 0.4:
        body["signature_name"] = draw.choice(("predict", "serving_rows", any_value(draw)))
    if draw.random() < 0.3:
        body[draw.choice(NAMES)] = any_value(draw)
    return draw.choice((body, body, body, any_value(draw)))


@pytest.mark.more
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 4, 5, 6))])
@pytest.mark.parametrize("server", ["client", "regression"])
def test_no_request_makes_the_server_fail(request, server, seed):
    asked = request.getfixturevalue(server)
    draw = random.Random(seed)
    statuses = set()
    for _ in range(200):
        path = draw.choice(PATHS)
        text = json.dumps(any_body(draw))
        if draw.random() < 0.05:
            text = text[: draw.randrange(len(text) + 1)]
        answer = asked.post(path, text)
        assert answer.status_code in (200, 400), (path, text, answer.text)
        assert ("error" in answer.json()) == (answer.status_code == 400)
        statuses.add(answer.status_code)
    assert statuses == {200, 400}
