"""Every public symbol of tf.estimator 2.15 and tf.compat.v1.estimator: present, with its arguments.

docs/api.md is the table of it, with the test that exercises each; `api_table.py` writes it.
"""

import inspect

import pytest

from tests.estimator_core import api_table

SYMBOLS = [(module, name) for module, names in api_table.SYMBOLS.items() for name in sorted(names)]
# Arguments with another default or position here, and the reason.
DIFFERENT = {
    # 2.15's own heads differ from its base class, which has the mode before; here it is the same.
    **{
        f"{head}.update_metrics": "the order of the base class"
        for head in ("BinaryClassHead", "MultiClassHead", "MultiHead", "MultiLabelHead", "RegressionHead")
    },
    "tpu.RunConfig.tpu_config": "an attribute of its objects, not of the class",
    "experimental.LinearSDCA.get_train_step": "takes its place behind LinearEstimator by itself",
}


def accepts(function, wanted, where):
    """Checks that `function` takes the arguments `wanted`, in the same positions."""
    if wanted[:1] == ["*args"]:
        return  # the reference does not say which arguments it takes
    ours = list(inspect.signature(function).parameters.values())
    takes_any = any(p.kind == p.VAR_KEYWORD for p in ours)
    for index, argument in enumerate(wanted):
        name, _, default = argument.partition("=")
        if name.startswith("**"):
            assert takes_any, f"{where} takes no {name}"
            continue
        if name not in [p.name for p in ours]:
            assert takes_any, f"{where} has no argument {name!r}"
            continue
        assert ours[index].name == name, f"{where}: argument {index} is {ours[index].name!r}"
        if default not in ("", "..."):
            assert repr(ours[index].default) == default, f"{where}: default of {name!r}"
        assert not default or ours[index].default is not inspect.Parameter.empty, f"{where}: {name}"
    for extra in ours[len(wanted) :]:
        optional = extra.default is not extra.empty or extra.kind in (extra.VAR_POSITIONAL, extra.VAR_KEYWORD)
        assert optional, f"{where} asks for {extra.name!r} as well"


@pytest.mark.parametrize(("module", "name"), SYMBOLS, ids=lambda value: value)
def test_a_symbol_has_the_arguments_and_members_of_the_reference(module, name):
    ours = api_table.ours(module, name)
    if ours is None and api_table.may_be_absent(name):
        return
    assert ours is not None, f"{module}.{name} is missing"
    reference = api_table.SYMBOLS[module][name]
    accepts(ours, reference["arguments"], name)
    for member, arguments in reference.get("members", {}).items():
        if f"{name}.{member}" in DIFFERENT:
            continue
        assert hasattr(ours, member), f"{name} has no {member}"
        if arguments is not None:
            accepts(getattr(ours, member), arguments, f"{name}.{member}")


@pytest.mark.parametrize(("module", "name"), SYMBOLS, ids=lambda value: value)
def test_the_test_of_a_symbol_is_there(module, name):
    if api_table.ours(module, name) is None:
        return
    node = api_table.node_of(module, name)
    text = api_table.source_of(node)
    assert text is not None, f"There is no test {node}"
    last = name.rpartition(".")[2]
    assert last in text, f"{node} does not name {last}"


def test_the_table_is_current():
    """Written by: python -m tests.estimator_core.api_table."""
    assert api_table.PATH.read_text() == api_table.render()
