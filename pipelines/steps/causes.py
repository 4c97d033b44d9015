"""Describes an error in one line: the reason from the user's code or a library, and the place.

Libraries wrap reasons: Beam raises a new error with a whole traceback in its message; TensorFlow's message
begins with "Graph execution error:" and the place where the graph was built, and has the reason further down.
"""

import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from components.errors import SettingError, call_stack

MAX_LENGTH = 600
"""Longer reasons are cut in the middle, since the beginning and the end matter most."""

# Text that TensorFlow puts around a reason. The last line of an operation's origin is "Node: 'name'".
_ORIGIN = re.compile(
    r"^Graph execution error:\s*(?:Detected at node .*?^Node: [^\n]*\n)?", re.DOTALL | re.MULTILINE
)
_ORIGIN_IN_FUNCTION = re.compile(
    r"^(?:Graph execution error:\s*)?Detected at node .*?(?:^\s*File [^\n]*\n(?:\s*\n)?)+",
    re.DOTALL | re.MULTILINE,
)
_BEHIND = re.compile(r"\n\s*\[\[\{?\{?node .*|\n\s*Original stack trace for .*", re.DOTALL)
_DETAILS = re.compile(r"\{\{function_node [^}]*\}\}\s*")
_TRACEBACK = re.compile(r"\n\s*Traceback \(most recent call last\):.*", re.DOTALL)
_USER_CODE = re.compile(r"^in user code:\n.*\n\n", re.DOTALL)  # AutoGraph's; the reason is last
_RUNNING = re.compile(r"\s*\[while running [^\]]*\]")

# An error in another process comes as the text of its traceback, on Flink after this prefix.
_FROM_WORKER = re.compile(
    r"^(?:Pipeline \S+ failed in state FAILED: .*?Error received from SDK harness for instruction \S+: )?"
    r"Traceback \(most recent call last\):\n",
    re.DOTALL,
)
_SETTING_ERROR = re.compile(
    rf"^{re.escape(SettingError.__module__)}\.{SettingError.__name__}: ", re.MULTILINE
)
_FRAME = re.compile(r'^ +File "([^"]+)", line (\d+)', re.MULTILINE)

_PROJECT = Path(__file__).parents[2]
_PACKAGES = ("components", "estimator_core", "pipelines")

_AROUND = (_ORIGIN, _ORIGIN_IN_FUNCTION, _USER_CODE, _BEHIND, _DETAILS, _TRACEBACK, _RUNNING)


def describe_cause(error: BaseException) -> str:
    """Returns the reason for an error: type, message, and line of code.

    If a library raised the error from another error, only that error is described; if the user's code did,
    both are. The line is the last one outside of installed libraries, such as in the user's module.
    """
    error = _before_beam(error)
    if error.__cause__ is None and _FROM_WORKER.match(str(error)):
        return _reason_of_worker(str(error))
    while error.__cause__ is not None and _is_wrapped(error):
        error = _before_beam(error.__cause__)
    text = _text(error)
    deepest = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    if deepest is not error:
        text += f", from {_text(deepest)}"
    for cause in (error, deepest):
        calls = [(file, line) for file, line in call_stack(cause) if _is_own_code(file)]
        if calls:
            file, line = calls[-1]
            return f"{text} ({file}, line {line})"
    return text


def _reason_of_worker(text: str) -> str:
    """Returns the reason at the end of a worker's traceback, and the line that raised it."""
    last = text.rpartition("Traceback (most recent call last):\n")[2]
    lines = iter(last.splitlines())
    reason = [next((line for line in lines if line and not line.startswith(" ")), "")]
    for line in lines:  # a message of several lines, up to a blank one or Java's own frames
        if not line.strip() or line.startswith("\tat "):
            break
        reason.append(line)
    described = _shortened(_RUNNING.sub("", " ".join(" ".join(reason).split())))
    calls = [call for call in _FRAME.findall(text) if _is_own_code(call[0])]
    return f"{described} ({calls[-1][0]}, line {calls[-1][1]})" if calls else described


def is_setting_error(error: BaseException | None) -> bool:
    """Returns True if a component refused a setting; Beam raises such an error as another type."""
    while error is not None and not isinstance(error, SettingError):
        if _FROM_WORKER.match(str(error)) and _SETTING_ERROR.search(str(error)):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error is not None


def _before_beam(error: BaseException) -> BaseException:
    """Returns the original of an error that Beam raised again with the name of the step."""
    context = error.__context__
    is_raised_anew = error.__cause__ is None and bool(_RUNNING.search(str(error)))
    return context if is_raised_anew and context is not None else error


def _is_wrapped(error: BaseException) -> bool:
    """Returns True if a library raised the error to wrap another error."""
    calls = call_stack(error)
    if not calls:
        return True
    file = Path(calls[-1][0])
    # This project's packages may be installed among the libraries.
    is_ours = any(file.is_relative_to(_PROJECT / package) for package in _PACKAGES)
    return not (is_ours or _is_own_code(str(file)))


def _text(error: BaseException) -> str:
    message = "; ".join(dict.fromkeys(_reasons(error)))
    message = _shortened(message)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _shortened(message: str) -> str:
    half = MAX_LENGTH // 2
    return message if len(message) <= MAX_LENGTH else f"{message[:half]} ... {message[-half:]}"


def _reasons(error: BaseException) -> Iterator[str]:
    """Yields the messages of an error, each in one line; for a group, those of its members."""
    members = getattr(error, "exceptions", ())  # of an ExceptionGroup, which is new in Python 3.11
    if members:
        for member in members:
            yield _text(member)
        return
    message = str(error)
    for pattern in _AROUND:
        message = pattern.sub("", message)
    message = " ".join(message.split()).removeprefix(f"{type(error).__name__}: ")
    if message:
        yield message


def _is_own_code(filename: str) -> bool:
    path = Path(filename)
    libraries = (sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))
    return (
        path.parent != Path(__file__).parent
        and not path.name.startswith("__autograph_generated_file")
        and path.is_file()
        and not any(path.is_relative_to(library) for library in libraries)
    )
