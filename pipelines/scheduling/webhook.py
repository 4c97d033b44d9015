"""POSTs the JSON of its standard input to an address: the command that `notify.webhook` runs.

    ESTIMATOR_PIPELINES_WEBHOOK=https://example.com/hook python webhook.py

A separate process can be stopped even if the other side does not answer. The address may hold a secret, so
it is not an argument, and only its host is printed. `user:password@` in it becomes basic authentication.
"""

import base64
import os
import sys
import urllib.error
import urllib.request
from urllib.parse import unquote, urlsplit

VARIABLE = "ESTIMATOR_PIPELINES_WEBHOOK"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a redirected POST would become a GET without its content."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def post(address: str, body: bytes) -> None:
    """POSTs JSON. The message of a ValueError holds nothing of the address but the host."""
    try:
        parts = urlsplit(address)
        headers = {"Content-Type": "application/json", "User-Agent": "estimator-pipelines"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()
        request = urllib.request.Request(url, body, headers, method="POST")
    except ValueError:
        raise ValueError("there is no valid address") from None
    try:
        urllib.request.build_opener(_NoRedirects).open(request).close()
    except urllib.error.HTTPError as error:
        raise ValueError(f"{parts.hostname} answered {error.code}") from None
    except Exception as error:  # its text may hold the address
        kind = getattr(error, "reason", None) or error
        why = getattr(kind, "verify_message", "") or getattr(kind, "strerror", "") or ""
        why = why or type(kind).__name__
        raise ValueError(f"{parts.hostname} cannot be reached: {why}") from None


if __name__ == "__main__":
    try:
        post(os.environ[VARIABLE], sys.stdin.buffer.read())
    except ValueError as problem:
        sys.exit(str(problem))
