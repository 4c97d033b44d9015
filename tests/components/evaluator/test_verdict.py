from pathlib import Path

import pytest

from components.evaluator.verdict import Verdict, load_verdict


def test_a_verdict_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    verdict = Verdict(False, {"auc": None}, ["auc is bad"], {"auc": 0.5}, {"a:1": {"auc": 1.0}})
    verdict.write(str(tmp_path))
    assert load_verdict(str(tmp_path)) == verdict


def test_a_missing_verdict_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No verdict in .*verdict\.json is missing"):
        load_verdict(str(tmp_path))
