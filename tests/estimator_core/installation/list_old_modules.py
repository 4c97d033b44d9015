"""Writes old_modules.json: which public names each module inside tensorflow_estimator 2.15 defines.

Runs in the reference environment that tests/oracle/README.md describes:

    REFERENCE_VENV/bin/python tests/estimator_core/installation/list_old_modules.py
"""

import importlib
import json
import os
import pkgutil
import types

import tensorflow as tf
import tensorflow_estimator.python.estimator as root

HERE = os.path.dirname(os.path.abspath(__file__))


def public_names(module, prefix, found):
    """Collects the public path of each object below a module, by the object's id."""
    for name in dir(module):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType) and not name.startswith("_"):
            public_names(value, f"{prefix}.{name}", found)
        elif not name.startswith("_"):
            found.setdefault(id(value), f"{prefix}.{name}")
    return found


def main():
    """Writes the file."""
    public = {}
    for prefix in ("tf.estimator", "tf.compat.v1.estimator"):
        owner = tf.estimator if prefix == "tf.estimator" else tf.compat.v1.estimator
        public_names(owner, prefix, public)
    modules = {}
    for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        if info.name.endswith(("_test", "_testing_utils", "_testing_utils_v1")):
            continue
        module = importlib.import_module(info.name)
        names = {
            name: public[id(value)]
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == info.name and id(value) in public
        }
        if names:
            modules[info.name] = dict(sorted(names.items()))
    with open(os.path.join(HERE, "old_modules.json"), "w") as file:
        json.dump(modules, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
