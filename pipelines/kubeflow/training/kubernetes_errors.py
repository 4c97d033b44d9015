"""Errors of Kubernetes' API."""

import json
from typing import Any

REQUEST_SECS = 60
"""Timeout of a request."""

_TOO_MANY_REQUESTS = 429


def is_transient(error: Any) -> bool:
    """Returns True if a retry may succeed: no connection, or an error of Kubernetes itself.

    A certificate that is refused once is refused again.
    """
    status = getattr(error, "status", 0) or 0  # 0 is no answer at all
    if status == 0 and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return False
    return status == 0 or status >= 500 or status == _TOO_MANY_REQUESTS


def message_of(error: Any) -> str:
    """Returns Kubernetes' message, or the library's about the connection."""
    try:
        return str(json.loads(error.body)["message"])
    except (AttributeError, TypeError, ValueError, LookupError):
        return str(getattr(error, "reason", None) or error)
