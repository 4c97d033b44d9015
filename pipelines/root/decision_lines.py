"""Describes the decisions of a binary model on the evaluation rows."""

from collections.abc import Iterator

from pipelines.config.load import is_of_tfx_pipeline
from pipelines.config.toml import toml_text
from pipelines.config.trainer import describe_goal
from pipelines.root.records import RunRecord

RARE = 0.1
"""Share of the rows up to which a class is rare."""


def decision_lines(record: RunRecord) -> Iterator[str]:
    """Yields the positive class and its threshold, and how many rows of a rare class are found.

    Nothing if the model is not binary, or if there are no rows of a class.
    """
    if not record.confusion:
        return
    negative, positive = record.confusion["classes"]
    right, wrong = (
        {negative: record.confusion[f"{kind}_negatives"], positive: record.confusion[f"{kind}_positives"]}
        for kind in ("true", "false")
    )
    totals = {negative: right[negative] + wrong[positive], positive: right[positive] + wrong[negative]}
    if not all(totals.values()):
        return
    decide = record.section("trainer").get("decide")
    goal = "" if decide is None else f" ({describe_goal(decide)})"
    share = totals[positive] / sum(totals.values())
    is_weighted = record.section("data").get("weight") or record.section("trainer").get("class_weights")
    yield (
        f"positive class: {positive!r}, {100 * share:.3g} % of {'the weight of ' if is_weighted else ''}"
        f"the evaluation rows; predicted at p > {record.confusion['threshold']:.4g}{goal}"
    )
    rarer = min(totals, key=totals.__getitem__)
    if decide is None and totals[rarer] > RARE * sum(totals.values()):
        return
    name = rarer if decide is None else positive
    found, taken = right[name], right[name] + wrong[name]
    recall, precision = (f"{100 * found / total:.3g} %" if total else "" for total in (totals[name], taken))
    if is_weighted:  # the sums are not numbers of rows
        line = f"weighted recall of {name!r} {recall}" + (f", precision {precision}" if taken else "")
    else:
        line = f"{found:,.0f} of {totals[name]:,.0f} {name!r} rows are found (recall {recall})"
        if taken:
            line += f"; {found:,.0f} of {taken:,.0f} rows predicted as {name!r} are right "
            line += f"(precision {precision})"
    if isinstance(decide, dict) and "cost" in decide:
        price = decide["cost"]
        cost = price["false_positive"] * wrong[positive] + price["false_negative"] * wrong[negative]
        constant = min(
            (price["false_negative"] * totals[positive], negative),
            (price["false_positive"] * totals[negative], positive),
        )
        line += f"; these errors cost {cost:,.6g}, and always predicting {constant[1]!r} {constant[0]:,.6g}"
    if decide is None and not record.section("module") and not is_of_tfx_pipeline(record.config):
        first = "" if name == positive else f"data.positive = {toml_text(name)} and "
        line += f". To find more, set {first}trainer.decide, such as {{recall = 0.8}}"
    yield line
