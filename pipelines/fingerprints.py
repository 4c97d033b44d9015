"""Hashes of what a component depends on beyond its inputs, so that the cache sees it change."""

import hashlib
import importlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from pipelines.model_code import ModelCode

_LIBRARIES = (
    "apache-beam",
    "tensorflow",
    "tensorflow-model-analysis",
    "tensorflow-transform",
    "tfx",
)


def component_fingerprints(
    run_id: str, data_fingerprint: str, code: ModelCode
) -> Mapping[str, str]:
    """Returns fingerprints by node id; `*` is for every node.

    Args:
      run_id: A Pusher is never taken from the cache: every blessed run is a version of its own.
      data_fingerprint: Of the CSV files. TFX looks at their size and time only.
      code: What Transform and Trainer call.
    """
    user_code = code_fingerprint(code)
    components_code, core_code = (
        _package_fingerprint("components"),
        _package_fingerprint("estimator_core"),
    )
    return {
        "*": _library_versions(),
        "CsvExampleGen": f"{components_code}-{data_fingerprint[:16]}",
        "Transform": user_code[:16],
        "Trainer": f"{components_code}-{core_code}-{user_code[:16]}",
        "Evaluator": components_code,
        "Pusher": run_id,
    }


def code_fingerprint(code: ModelCode) -> str:
    """Returns a hash of what Transform and Trainer call; empty when its source is not here."""
    from components.user_code import fingerprint

    import_path = code.trainer_path or code.preprocessing_fn
    return fingerprint(
        import_path=None if code.module_file else import_path, module_file=code.module_file
    )


def _library_versions() -> str:
    versions = [f"{library}=={metadata.version(library)}" for library in _LIBRARIES]
    return hashlib.sha256(" ".join(versions).encode()).hexdigest()[:16]


def _package_fingerprint(package: str) -> str:
    folder = Path(str(importlib.import_module(package).__file__)).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
