"""The outcome of the Tuner's search in words."""

from collections.abc import Mapping
from typing import Any


def search_in_words(search: Mapping[str, Any]) -> str:
    """Returns a sentence that compares the best trial with the training without a search."""
    trials = {trial["number"]: trial for trial in search["trials"]}
    best, default = trials[search["best"]], trials.get(search["default"])
    reasons = {
        state: [trial["reason"] for trial in search["trials"] if trial["state"] == state]
        for state in ("pruned", "failed")
    }
    remarks = []
    if len(trials) < search["planned"]:
        remarks.append(f"of {search['planned']} planned, the time was up")
    if reasons["pruned"]:
        remarks.append(f"{len(reasons['pruned'])} pruned")
    if reasons["failed"]:
        remarks.append(f"{len(reasons['failed'])} failed: {reasons['failed'][0]}")
    which = "only trial" if len(trials) == 1 else f"best of {len(trials)} trials"
    remark = f" ({'; '.join(remarks)})" if remarks else ""
    text = f"the {which}{remark} has {search['metric']} {best['value']:.5g}"
    if default is None:
        return f"{text}; the values used without a search gave no result"
    if default is best:
        return f"{text}, with the values used without a search: no others were better"
    text = f"{text}, without a search {default['value']:.5g}"
    if search["chosen"] == search["best"]:
        return f"{text}: {values_in_words(best['values'])}"
    least = (
        f"two standard errors of the difference over the {search['folds']} folds"
        if search["folds"] > 1
        else "1 % of the value without a search"
    )
    return (
        f"{text}: the difference may be chance, because it is not above {search['margin']:.4g} ({least}), so "
        "the values used without a search are kept"
    )


def values_in_words(values: Mapping[str, Any]) -> str:
    named = [
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in values.items()
    ]
    return ", ".join(named) or "without hyperparameters"
