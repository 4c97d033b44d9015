"""Writes public_symbols.json: the public names of tf.estimator 2.15, and their arguments.

Runs in the reference environment that tests/oracle/README.md describes:

    REFERENCE_VENV/bin/python tests/estimator_core/list_public_symbols.py
"""

import inspect
import json
import os

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments_of(function):
    """Returns the arguments as text: "name", "name=default", "*names", "**names"."""
    arguments = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        if parameter.kind == parameter.VAR_POSITIONAL:
            arguments.append(f"*{parameter.name}")
        elif parameter.kind == parameter.VAR_KEYWORD:
            arguments.append(f"**{parameter.name}")
        elif default is parameter.empty:
            arguments.append(parameter.name)
        elif isinstance(default, (type(None), bool, int, float, str)):
            arguments.append(f"{parameter.name}={default!r}")
        else:
            arguments.append(f"{parameter.name}=...")  # an object has no name that we could compare
    return arguments


def members_of(cls, public_classes):
    """Returns the public methods (with arguments) and other members, without those of public bases."""
    members = {}
    hidden = set()
    for base in cls.__mro__:
        if base in (object, tuple, Exception, BaseException) or (base is not cls and base in public_classes):
            break
        for name, value in vars(base).items():
            if "HiddenTfApi" in type(value).__name__:
                hidden.add(name)
            if name.startswith("_") or name in members or name in hidden:
                continue
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            members[name] = arguments_of(value) if inspect.isfunction(value) else None
    return members


def names_in(module):
    """Yields (name, value) of the public symbols, with dots for those of submodules."""
    for name in sorted(vars(module).keys() if inspect.ismodule(module) else dir(module)):
        value = getattr(module, name)
        if name.startswith("_"):
            continue
        if inspect.ismodule(value):
            yield from ((f"{name}.{inner}", found) for inner, found in names_in(value))
        else:
            yield name, value


def main():
    modules = {
        "tf.estimator": tf.estimator,
        "tf.compat.v1.estimator": tf.compat.v1.estimator,
        "tf.keras.estimator": tf.keras.estimator,
    }
    symbols = {}
    for module_name, module in modules.items():
        _ = dir(module)  # loads it
        found = dict(names_in(module))
        public_classes = {value for value in found.values() if inspect.isclass(value)}
        symbols[module_name] = {
            name: {
                "arguments": arguments_of(value),
                **({"members": members_of(value, public_classes)} if inspect.isclass(value) else {}),
            }
            for name, value in found.items()
        }
    with open(os.path.join(HERE, "public_symbols.json"), "w") as file:
        json.dump(symbols, file, indent=None, sort_keys=True, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
