"""Check that a step runs the code that `Plan` has fingerprinted.

Each step is a pod of its own. Between two of them the tag of an image may be moved, or a module on the
volume edited; the step's outputs would then be cached under the fingerprint of other code.
"""

from typing import Any

from components.user import code as user_code
from components.user import source as user_source
from pipelines.definitions.fingerprints import library_versions, package_fingerprint, source_of
from pipelines.definitions.model_code import ModelCode
from pipelines.errors import RunFailedError

_PACKAGES = {
    "example_gen": ("components",),
    "example_validator": ("components",),
    "tuner": ("components", "estimator_core"),
    "trainer": ("components", "estimator_core"),
    "evaluator": ("components",),
    "serving_check": ("components",),
}
"""Packages of this project that a step runs, by role, as in `component_fingerprints`."""

_CALLS_USERS_CODE = ("transform", "tuner", "trainer")


def code_of_step(role: str, code: ModelCode) -> dict[str, Any]:
    """Returns the location and the hashes of the code that a component runs, as plain values.

    They cover only code that the component's fingerprint depends on.

    Args:
      role: Role of the component, such as `trainer`.
      code: Code that Transform and Trainer call.
    """
    source = source_of(code) if role in _CALLS_USERS_CODE else {}
    return {
        "source": source,
        "packages": list(_PACKAGES.get(role, ())),
        "digests": _digests(source, _PACKAGES.get(role, ())),
    }


def check_code(planned: dict[str, Any], component: str) -> None:
    """Checks that the code of this process is the code that `Plan` fingerprinted.

    Args:
      planned: Result of `code_of_step`.
      component: Id of the step, for the error.

    Raises:
      RunFailedError: The code has changed.
    """
    now = _digests(planned["source"], planned.get("packages", ()))
    changed = [part for part, digest in planned["digests"].items() if now.get(part) != digest]
    if changed:
        raise RunFailedError(
            component,
            f"{' and '.join(changed)} changed after the step Plan read them: the tag of the image was "
            "moved, or a module on a volume was edited. Start a new run; give each image a tag of its own",
        )


def make_module_importable(planned: dict[str, Any]) -> None:
    """Lets this process import the user's module file by its name, as Transform does.

    Args:
      planned: Result of `code_of_step`.

    Raises:
      ImportError: The name would import another module.
    """
    if module_file := planned["source"].get("module_file"):
        user_code.importable_name(module_file)


def _digests(source: dict[str, Any], packages: Any) -> dict[str, str]:
    digests = {"the libraries": library_versions()}
    for package in packages:
        digests[f"the package {package}"] = package_fingerprint(package)
    if source:
        digests["the model's code"] = user_source.fingerprint(**source)
    return digests
