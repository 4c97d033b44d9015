"""POSTs a notification to a webhook, with one time limit for everything."""

import base64
import http.client
import io
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from typing import Any, BinaryIO
from urllib.parse import SplitResult, unquote, urlsplit

from pipelines.scheduling.notify.delivery_error import DeliveryError

_AGENT = "estimator-pipelines"
_NO_ADDRESS = "notify.webhook: there is no address, or it has no host"


def post(address: str, body: bytes, timeout_secs: float) -> None:
    """POSTs JSON, and waits for the answer.

    Args:
      address: Address of the webhook; `user:password@` in it becomes basic authentication.
      body: JSON content.
      timeout_secs: Time limit for the name's look-up, the connection and the head of the answer together.

    Raises:
      DeliveryError: It was not accepted. The message holds nothing of the address but the host.
    """
    parts = _split(address)
    request = urllib.request.Request(
        parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl(),
        body,
        {"Content-Type": "application/json", "User-Agent": _AGENT, **_authorization(parts)},
        method="POST",
    )
    problems: list[str] = []

    def send() -> None:
        try:
            with _opener(timeout_secs).open(request, timeout=timeout_secs):
                return  # the body of the answer does not matter, however long it is
        except urllib.error.HTTPError as error:
            error.close()
            problems.append(f"answered {error.code}")
        except Exception as error:  # any error that a stranger's answer may cause in a library
            problems.append(_words(error, timeout_secs))

    # A socket's limit applies to each call, and a look-up has none: the thread is abandoned at the limit.
    thread = threading.Thread(target=send, name="notify.webhook", daemon=True)
    thread.start()
    thread.join(timeout_secs)
    if thread.is_alive():
        problems.insert(0, _words(TimeoutError(), timeout_secs))
    if problems:
        raise DeliveryError(f"notify.webhook: {parts.hostname} {problems[0]}")


def _split(address: str) -> SplitResult:
    """Returns the parts of an address.

    Raises:
      DeliveryError: It is invalid.
    """
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise DeliveryError(
            "notify.webhook: the address cannot be used: its host or its port is not written as one"
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DeliveryError(_NO_ADDRESS)
    # urlsplit drops tabs and line breaks.
    if re.search(r"[^!-~]", address):
        raise DeliveryError(
            "notify.webhook: the address cannot be used: it holds a space or another character that no "
            "address has; a space in a path is written as %20"
        )
    return parts


def _authorization(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    both = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a redirected POST would become a GET without its content."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Until(io.RawIOBase):
    """A stream that raises TimeoutError after a deadline, even if each single read is in time."""

    def __init__(self, stream: BinaryIO, deadline: float):
        self._stream = stream
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if time.monotonic() > self._deadline:
            raise TimeoutError
        data = self._stream.read1(len(buffer))  # type: ignore[attr-defined]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _opener(timeout_secs: float) -> urllib.request.OpenerDirector:
    """Returns an opener of addresses that uses the environment's proxies.

    Args:
      timeout_secs: Time from now until the head of the answer.
    """
    deadline = time.monotonic() + timeout_secs

    class Response(http.client.HTTPResponse):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            self.fp = io.BufferedReader(_Until(self.fp, deadline))

    class Connection(http.client.HTTPConnection):
        response_class = Response

    class SecureConnection(http.client.HTTPSConnection):
        response_class = Response

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Connection, req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(SecureConnection, req, context=ssl.create_default_context())

    return urllib.request.build_opener(_NoRedirects, Http, Https)


def _words(error: BaseException, timeout_secs: float) -> str:
    """Returns a description of an error in our own words: its text may hold the address."""
    reason = getattr(error, "reason", None)
    if isinstance(error, urllib.error.URLError) and isinstance(reason, BaseException):
        error = reason
    kind = type(error).__name__
    if isinstance(error, TimeoutError):
        return f"cannot be reached: it had not answered after {timeout_secs:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"cannot be reached: its certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"cannot be reached: no TLS ({error.reason})"
    if isinstance(error, http.client.RemoteDisconnected):
        return "cannot be reached: it has closed the connection without an answer"
    if isinstance(error, http.client.HTTPException):
        return f"has answered something that is no HTTP ({kind})"
    if isinstance(error, OSError):
        return f"cannot be reached: {error.strerror or kind}"
    if isinstance(error, UnicodeError):
        return "cannot be reached: this is no name of a host"
    return f"cannot be reached ({kind})"
