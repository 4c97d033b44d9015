import hashlib

import pytest

from components.user import source as user_source

TAXI = """
from helpers import scaled

BUCKETS = 10


def preprocessing_fn(inputs):
    return {"x": scaled(inputs["x"], BUCKETS)}


def trainer_fn(args, schema):
    return {"estimator": Model().build()}


class Model:
    def build(self):
        return model_of(self)


def model_of(model):
    return model


def plot_history(history):
    print(history)
"""
HELPERS = """
def scaled(x, by):
    return x / by


def unscaled(x, by):
    return x * by
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "taxi.py").write_text(TAXI)
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "other_project.py").write_text("def trainer(): pass\n")
    return tmp_path / "taxi.py"


def test_the_fingerprint_changes_with_the_module_and_its_neighbours(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import layers\nA = 1\n")
    first = user_source.fingerprint(module_file=str(path))
    assert user_source.fingerprint(module_file=str(path)) == first
    (tmp_path / "layers.py").write_text("B = 1\n")
    second = user_source.fingerprint(module_file=str(path))
    path.write_text("import layers\nA = 2\n")
    third = user_source.fingerprint(module_file=str(path))
    (tmp_path / "layers.py").write_text("B = (1\n")  # as it is while somebody edits it
    fourth = user_source.fingerprint(module_file=str(path))
    assert len({first, second, third, fourth, ""}) == 5


@pytest.mark.parametrize(
    ("module", "counts"),
    [
        ("from layers import dense", True),
        ("def f():\n    import layers", True),
        ("import importlib\nlayers = importlib.import_module('project.layers')", True),
        ("import middle", True),  # which imports it
        ("from other import layer", False),
    ],
)
def test_a_file_beside_the_module_counts_if_it_is_used(tmp_path, module, counts):
    (tmp_path / "module.py").write_text(module)
    (tmp_path / "middle.py").write_text("import layers")
    (tmp_path / "other.py").write_text("layer = 1")
    (tmp_path / "pipeline.py").write_text("from module import f")
    (tmp_path / "layers.py").write_text("B = 1")
    before = user_source.fingerprint(module_file=str(tmp_path / "module.py"))
    (tmp_path / "layers.py").write_text("B = 2")
    after = user_source.fingerprint(module_file=str(tmp_path / "module.py"))
    assert (before != after) == counts
    (tmp_path / "pipeline.py").write_text("from module import g")
    assert user_source.fingerprint(module_file=str(tmp_path / "module.py")) == after


def test_the_neighbours_of_a_linked_module_are_those_of_its_file(tmp_path):
    (tmp_path / "v3").mkdir()
    (tmp_path / "v3" / "model.py").write_text("import layers\n")
    (tmp_path / "v3" / "layers.py").write_text("B = 1\n")
    (tmp_path / "model.py").symlink_to("v3/model.py")
    before = user_source.fingerprint(module_file=str(tmp_path / "model.py"))
    (tmp_path / "v3" / "layers.py").write_text("B = 2\n")
    assert user_source.fingerprint(module_file=str(tmp_path / "model.py")) != before


def test_the_init_file_of_a_package_counts_and_odd_files_do_not(project):
    before = user_source.fingerprint(module_file=str(project))
    (project.parent / ".#taxi.py").symlink_to("nobody@nowhere")
    assert user_source.fingerprint(module_file=str(project)) == before
    (project.parent / "helpers.py").write_text("X = " + " + ".join(["1"] * 20_000) + "\n")
    assert user_source.fingerprint(module_file=str(project)) not in ("", before)
    found = set()
    for text in ("B = 1", "B = 2"):
        (project.parent / "__init__.py").write_text(text)
        found.add(user_source.fingerprint(module_file=str(project)))
    assert len(found) == 2


def test_comments_and_line_breaks_do_not_change_the_fingerprint(project):
    before = user_source.fingerprint(module_file=str(project))
    project.write_text("# A taxi.\n" + TAXI.replace("(model):", "(\n    model\n):  # same"))
    assert user_source.fingerprint(module_file=str(project)) == before


def test_the_fingerprint_is_the_same_on_each_python(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("def f(x): return None\nclass C: pass\n")
    # Written by Python 3.11's ast.dump.
    function = (
        "FunctionDef(name='f', args=arguments(posonlyargs=[], args=[arg(arg='x')], kwonlyargs=[], "
        "kw_defaults=[], defaults=[]), body=[Return(value=Constant(value=None))], decorator_list=[])"
    )
    a_class = "ClassDef(name='C', bases=[], keywords=[], body=[Pass()], decorator_list=[])"
    found = user_source.read_definitions(module_file=str(path))
    assert found["module.py:f"].digest == hashlib.sha256(function.encode()).hexdigest()
    assert found["module.py:C"].digest == hashlib.sha256(a_class.encode()).hexdigest()


def test_the_same_code_by_import_path_and_code_that_is_not_here(project, monkeypatch):
    assert user_source.fingerprint(import_path="no_such_project.taxi.trainer_fn") == ""
    assert user_source.fingerprint(module_file="no_such_file.py") == ""
    monkeypatch.chdir(project.parent)
    by_path = user_source.fingerprint(import_path="taxi.trainer_fn")
    assert by_path == user_source.fingerprint(module_file=str(project)) != ""


def test_an_edit_changes_the_definition_that_it_is_in(project):
    before = user_source.read_definitions(module_file=str(project))
    project.write_text(TAXI.replace("return model\n", "return [model]\n").replace("= 10", "= 9"))
    after = user_source.read_definitions(module_file=str(project))
    assert list(before) == list(after)
    changed = {name for name in before if before[name].digest != after[name].digest}
    assert changed == {"taxi.py:(module level)", "taxi.py:model_of"}


def test_what_functions_reach(project):
    definitions = user_source.read_definitions(module_file=str(project))
    own, helper = ({"(module level)", function} for function in ("preprocessing_fn", "scaled"))
    expected = {f"taxi.py:{name}" for name in own} | {f"helpers.py:{name}" for name in helper}
    assert user_source.reached(definitions, ["taxi.preprocessing_fn"]) == expected
    reached = user_source.reached(definitions, ["taxi.preprocessing_fn", "taxi.trainer_fn"])
    other_project = {"other_project.py:(module level)", "other_project.py:trainer"}
    assert set(definitions) - reached == {"taxi.py:plot_history", "helpers.py:unscaled"} | other_project


@pytest.mark.parametrize(
    ("files", "edited"),
    [
        ({"taxi.py": "from model_a import preprocessing_fn, trainer_fn\n"}, "taxi.py:(module level)"),
        (
            {
                "taxi.py": "from model import prep as preprocessing_fn, train as trainer_fn\n",
                "model.py": "def prep(inputs):\n    return inputs\n\ndef train(args, schema):\n    pass\n",
            },
            "model.py:train",
        ),
        ({"taxi.py": TAXI, "__init__.py": "RATE = 0.1\n"}, "__init__.py:(module level)"),
        ({"taxi.py": TAXI + "\n@register\ndef wide():\n    return 1\n"}, "taxi.py:(module level)"),
        (
            {"taxi.py": TAXI.replace("BUCKETS = 10", "MODELS = ['models.wide_model']"),
             "models.py": "def wide_model():\n    return 1\n"},
            "models.py:wide_model",
        ),
    ],
    ids=["re-export", "alias", "package", "decorated", "string"],
)  # fmt: skip
def test_what_is_used_without_being_called_by_name(tmp_path, files, edited):
    for name, source in files.items():
        (tmp_path / name).write_text(source)
    definitions = user_source.read_definitions(module_file=str(tmp_path / "taxi.py"))
    functions = ["my_project.taxi.preprocessing_fn", "my_project.taxi.trainer_fn"]
    assert edited in user_source.reached(definitions, functions)
