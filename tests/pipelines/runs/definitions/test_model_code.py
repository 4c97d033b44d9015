import importlib.util
import sys

import pytest

from pipelines.config.load import load_config
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.runs.definitions.model_code import choose_model_code

CODE = "def preprocessing_fn(inputs):\n    return inputs\n\n\ndef trainer_fn(args, schema):\n    return {}\n"


WITH_RUN_FN = CODE.replace("trainer_fn(args, schema)", "run_fn(fn_args)")


@pytest.fixture
def choose(tmp_path):
    """Returns a function that chooses the code for a regression, with settings."""
    file = tmp_path / "data.csv"
    file.write_text("x,y\n" + "".join(f"{number}.5,{number}.5\n" for number in range(40)))

    def choose_code(*settings):
        config = load_config(data=str(file), label="y", settings=settings)
        return choose_model_code(config, profile_csv([file]))

    return choose_code


def write(file, code=CODE):
    """Writes a module, and returns the setting that names it."""
    file.write_text(code)
    return f"module.file={file}"


def test_without_a_module_it_is_the_generic_model(choose):
    code = choose("trainer.train_steps=7", "trainer.custom_config.a=1")
    assert code.trainer_path == "pipelines.tabular.training.trainer_fn"
    assert code.plan.label.problem_type == "regression"
    assert code.train_steps == 7
    assert code.custom_config["a"] == 1
    assert code.required_label == "y"


def test_a_module_by_import_path(choose, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "code_of_a_user.py").write_text(CODE)
    code = choose("module.path=code_of_a_user", "data.problem_type=regression")
    assert code.preprocessing_fn == "code_of_a_user.preprocessing_fn"
    assert (code.trainer, code.trainer_path) == ("trainer_fn", "code_of_a_user.trainer_fn")
    assert (code.train_steps, code.eval_steps, code.label) == (1_000, 150, None)
    assert code.thresholds == ()
    assert code.default_checks.problem_type == "regression"
    assert "root_mean_squared_error" in code.metrics
    assert code.required_label is None


def test_what_nothing_says_of_a_model_is_left_to_its_predictions(choose, tmp_path):
    module = write(tmp_path / "code_of_unknown_kind.py")
    unknown = choose(module)
    assert "root_mean_squared_error" in unknown.metrics  # of the raw column, as it is
    checks = unknown.default_checks
    assert (checks.problem_type, checks.fallback) == (None, "regression")
    assert choose(module, 'evaluator.metrics=["recall"]').default_checks.problem_type == "binary"


def test_a_module_file_with_run_fn(choose, tmp_path):
    file = tmp_path / "code_with_run_fn.py"
    module = write(file, WITH_RUN_FN)
    bound = 'evaluator.thresholds=[{metric = "auc", lower = 0.6}]'
    code = choose(module, "evaluator.label=y_xf", bound)
    assert (code.trainer, code.trainer_path, code.module_file) == ("run_fn", None, str(file))
    assert code.label == "y_xf"
    assert "auc" in code.metrics  # the thresholds tell that it is a binary problem
    assert code.preprocessing_fn == "code_with_run_fn.preprocessing_fn"
    assert sys.modules["code_with_run_fn"].__file__ == str(file)
    # TFX imports it anew, by its name.
    assert importlib.util.find_spec("code_with_run_fn").origin == str(file)


def test_a_label_that_the_module_makes_is_not_judged_as_the_raw_column(choose, tmp_path):
    made = (write(tmp_path / "code_with_a_label.py"), "evaluator.label=y_xf")
    with pytest.raises(BadInputError, match=r"'y_xf' is not the column 'y'"):
        choose(*made)
    code = choose(*made, "data.problem_type=binary")
    assert "auc" in code.metrics
    assert "root_mean_squared_error" not in code.metrics
    assert code.default_checks.problem_type == "binary"


def test_workers_need_a_trainer_fn(choose, tmp_path):
    module = write(tmp_path / "code_of_one_process.py", WITH_RUN_FN)
    with pytest.raises(BadInputError, match=r"^trainer\.workers = 2: .*process\.py has a run_fn"):
        choose(module, "trainer.workers=2", "trainer.ps=1")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("code_one", "def trainer_fn(a, b): ...", r"defines no preprocessing_fn\. .* trainer_fn"),
        ("code_two", "def preprocessing_fn(a): ...", "defines no trainer_fn or run_fn"),
        ("code_three", "import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("code_four", "def x(:", "SyntaxError"),
        (
            "code_five",
            CODE.replace("return inputs", "return tf.numpy_function(abs, [inputs], float)"),
            r"^code_five\.py: preprocessing_fn uses numpy_function\. Its Python code",
        ),
        (
            "code_six",
            CODE.replace("return inputs", "return own(inputs)")
            + "def own(x):\n    return tf.py_function(x)\n",
            r"^code_six\.py: own, which preprocessing_fn calls, uses py_function\.",
        ),
        ("json", CODE, r"the module name 'json' is taken by .*json/__init__\.py\. Rename"),
        (
            "code_that_changes",
            f"{CODE}open(__file__, 'a').write('A = 1')\n",
            r"code_that_changes\.py was changed while it was imported",
        ),
    ],
)
def test_modules_that_cannot_be_used(choose, tmp_path, name, text, message):
    module = write(tmp_path / f"{name}.py", text)
    with pytest.raises(BadInputError, match=message):
        choose(module)


def test_python_operations_of_other_functions_are_allowed(choose, tmp_path):
    (tmp_path / "code_nobody_imports.py").write_text("def own(x):\n    return tf.py_function(x)\n")
    code = CODE.replace("return inputs", "return own(inputs)").replace("return {}", "tf.py_function(1)")
    text = f"try:\n    from tensorflow import py_func\nexcept ImportError: ...\n{code}def own(x): ...\n"
    assert choose(write(tmp_path / "code_seven.py", text)).trainer == "trainer_fn"


def test_a_module_file_that_is_not_there(choose, tmp_path):
    with pytest.raises(BadInputError, match=r"none\.py' is not a Python file"):
        choose(f"module.file={tmp_path / 'none.py'}")
