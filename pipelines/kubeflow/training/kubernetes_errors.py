"""What Kubernetes answers in place of what was asked for."""

import json
from typing import Any

REQUEST_SECS = 60
"""How long an answer may take."""

_TOO_MANY_REQUESTS = 429


def is_transient(error: Any) -> bool:
    """Returns whether Kubernetes may answer later: no connection, or an error of its own."""
    status = getattr(error, "status", 0) or 0  # 0 is no answer at all
    return status == 0 or status >= 500 or status == _TOO_MANY_REQUESTS


def message_of(error: Any) -> str:
    """Returns what Kubernetes says; else what the library says of the connection."""
    try:
        return str(json.loads(error.body)["message"])
    except (AttributeError, TypeError, ValueError, LookupError):
        return str(getattr(error, "reason", None) or error)
