"""Hashes of what a component depends on beyond its inputs, so that the cache sees it change."""

import hashlib
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
    from components.user_code import fingerprint

    import_path = code.trainer_path or code.preprocessing_fn
    user_code = fingerprint(
        import_path=None if code.module_file else import_path, module_file=code.module_file
    )
    return {
        "*": _own_code_fingerprint(),
        "CsvExampleGen": data_fingerprint[:16],
        "Transform": user_code[:16],
        "Trainer": user_code[:16],
        "Pusher": run_id,
    }


def _own_code_fingerprint() -> str:
    import components
    import estimator_core
    import pipelines

    digest = hashlib.sha256()
    for library in _LIBRARIES:
        digest.update(f"{library}=={metadata.version(library)}\0".encode())
    for package in (components, estimator_core, pipelines):
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
