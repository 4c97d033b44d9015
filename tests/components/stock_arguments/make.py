"""Writes arguments.json: the arguments of TFX's constructors in earlier releases, in their order.

    pip download --no-deps tfx==1.0.0 tfx==1.15.1 --python-version 3.8 --only-binary :all:
    python make.py tfx-1.0.0-py3-none-any.whl tfx-1.15.1-py3-none-any.whl

It reads the sources in the wheels, as these releases can't be imported beside today's TensorFlow.
"""

import ast
import json
import sys
import zipfile
from pathlib import Path

MODULES = {
    "CsvExampleGen": "example_gen.csv_example_gen",
    "StatisticsGen": "statistics_gen",
    "ExampleValidator": "example_validator",
    "Transform": "transform",
    "Trainer": "trainer",
    "Evaluator": "evaluator",
    "Pusher": "pusher",
    "InfraValidator": "infra_validator",
}
JSON = Path(__file__).with_name("arguments.json")


def arguments(wheel, name):
    """Returns the arguments of a component's constructor."""
    source = wheel.read(f"tfx/components/{MODULES[name].replace('.', '/')}/component.py")
    (component,) = (
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name
    )
    (init,) = (
        node for node in component.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    )
    return [argument.arg for argument in (*init.args.args[1:], *init.args.kwonlyargs)]


if __name__ == "__main__":
    found = {}
    for path in sys.argv[1:]:
        version = Path(path).name.split("-")[1]
        with zipfile.ZipFile(path) as wheel:
            found[version] = {name: arguments(wheel, name) for name in MODULES}
    JSON.write_text(json.dumps(found, indent=2) + "\n")
