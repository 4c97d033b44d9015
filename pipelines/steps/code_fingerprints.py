"""Hashes of what a step reads from outside of its root: code, libraries, imported files."""

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from components.user import source as user_source
from pipelines.errors import BadInputError

_CHUNK_BYTES = 1 << 20
_LIBRARIES_OF = {
    "statistics_gen": ("TFDV", "tensorflow-data-validation"),
    "example_validator": ("TFDV", "tensorflow-data-validation"),
    "tuner": ("optuna", "optuna"),
}
_LIBRARIES = (
    "apache-beam",
    "keras",
    "tensorflow",
    "tensorflow-model-analysis",
    "tensorflow-transform",
    "tfx",
)
_TRAINING = ("components.trainer", "components.tuner")


def code_fingerprints(class_path: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """Returns the fingerprints of a component's executor, and of the module files that it is given."""
    fingerprints = {"libraries": library_versions()}
    for part, (name, library) in _LIBRARIES_OF.items():
        if f".{part}." in class_path:
            fingerprints[name] = metadata.version(library)
    package = class_path.partition(".")[0]
    if package == "components":
        fingerprints["components"] = package_fingerprint("components")
        if class_path.startswith(_TRAINING):
            fingerprints["core"] = package_fingerprint("estimator_core")
    elif package != "tfx":
        fingerprints["executor"] = user_source.reached_fingerprint(class_path)[:16]
    sources = [{"module_file": properties["module_file"]}] if properties.get("module_file") else []
    # Such as `run_fn="my_project.model.run_fn"`.
    functions = [value for name, value in sorted(properties.items()) if name.endswith("_fn")]
    sources += [{"import_path": value} for value in functions if "." in str(value)]
    code = "".join(user_source.fingerprint(**source) for source in sources)
    if code:
        fingerprints["code"] = hashlib.sha256(code.encode()).hexdigest()[:16]
    return fingerprints


def content_fingerprint(uri: str, component: str) -> str:
    """Returns a hash of an imported file or folder: of local files the content, of others size and time."""
    digest = hashlib.sha256()
    if "://" in uri:
        states = list(_remote_states(uri))
        if not states:
            raise BadInputError(f"{component}: there is nothing to import in {uri}")
        for name, state in states:
            digest.update(f"{name}\0{state}\0".encode())
        return digest.hexdigest()
    place = Path(uri)
    if not place.exists():
        raise BadInputError(f"{component}: there is nothing to import in {uri}")
    files = [place]
    if place.is_dir():
        walk = os.walk(place, followlinks=True)
        files = sorted(Path(folder, name) for folder, _, names in walk for name in names)
    for file in files:
        digest.update(os.path.relpath(file, place).encode() + b"\0")
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
        digest.update(b"\0")
    return digest.hexdigest()


def _remote_states(uri: str) -> Iterator[tuple[str, str]]:
    import tensorflow as tf

    paths = [uri]
    if tf.io.gfile.isdir(uri):
        walk = tf.io.gfile.walk(uri)
        paths = sorted(os.path.join(folder, name) for folder, _, names in walk for name in names)
    for path in paths:
        if tf.io.gfile.exists(path):
            state = tf.io.gfile.stat(path)
            yield path[len(uri) :], f"{state.length} {state.mtime_nsec}"


def library_versions() -> str:
    """Returns a hash of the versions of the libraries that components depend on."""
    versions = [f"{library}=={metadata.version(library)}" for library in _LIBRARIES]
    return hashlib.sha256(" ".join(versions).encode()).hexdigest()[:16]


@functools.cache
def package_fingerprint(package: str) -> str:
    """Returns a hash of the source files of a package."""
    spec = importlib.util.find_spec(package)  # which does not import the package
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"The package {package} is not installed.", name=package)
    folder = Path(spec.origin).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
