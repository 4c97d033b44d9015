"""Writes old_modules.json and old_arguments.json, about the modules inside tensorflow_estimator 2.15.

The first has the public names that each module defines; the second has the arguments of the private functions
and classes that are here, too.

Runs in the reference environment that tests/oracle/README.md describes:

    REFERENCE_VENV/bin/python tests/estimator_core/installation/list_old_modules.py
"""

import importlib
import inspect
import json
import os
import pkgutil
import runpy
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


def arguments(public):
    """Returns the names of the arguments of each private name in the table of places, by module.

    Args:
        public: Public path of each object, by the object's id.
    """
    source = os.path.join(HERE, "../../../estimator_core/installation/old_places.py")
    found = {}
    for path, names in sorted(runpy.run_path(source)["PLACES"].items()):
        if path.startswith(root.__name__) or path.endswith("estimator_training"):
            try:
                module = importlib.import_module(path)
            except ImportError:  # of an older TensorFlow
                continue
            values = {name: getattr(module, name, None) for name in sorted(names)}
            found[path] = {
                name: list(inspect.signature(value).parameters)
                for name, value in values.items()
                if (inspect.isfunction(value) or inspect.isclass(value)) and id(value) not in public
            }
    return {path: of_module for path, of_module in found.items() if of_module}


def write(name, content):
    """Writes a file beside this one."""
    with open(os.path.join(HERE, name), "w") as file:
        json.dump(content, file, indent=1)
        file.write("\n")


def main():
    """Writes the files."""
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
    write("old_modules.json", modules)
    write("old_arguments.json", arguments(public))


if __name__ == "__main__":
    main()
