"""URLs whose passwords and tokens stay in environment variables."""

import os
import re
from urllib.parse import quote, unquote, urlsplit

from pipelines.errors import BadInputError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|\$\{\w+\}")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_IN_USER = re.compile(r"\$\{(\w+)\}(?=[^/?]*@)")
_SETTING = re.compile(r"([\w.-]+)=([^&;]+)")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|credential|key|sig$|signature", re.IGNORECASE)


def is_url(path: str) -> bool:
    """Returns True for a URL, also for an environment variable that holds one, such as `${DATABASE_URL}`."""
    return _URL.match(path) is not None


def check_url(url: str) -> str:
    """Returns a URL that holds neither a password nor a token, as it is part of every record."""
    try:
        parts = urlsplit(_VARIABLE.sub("", url))
    except ValueError:
        raise ValueError("it is not a URL") from None  # the original message repeats the user and password
    names = [name for name, _ in _SETTING.findall(unquote(parts.query)) if _SECRET_NAME.search(name)]
    if parts.password or names or (parts.username and parts.scheme.startswith("http")):
        raise ValueError(
            f"{f'the value of {names[0]}' if names else 'the password'} would be stored in every record. Set "
            "an environment variable, and write its name instead, as in "
            "postgresql://reader:${DB_PASSWORD}@db.example.com/shop"
        )
    return url


class ExpandedUrl:
    """A URL with the values of its environment variables."""

    def __init__(self, url: str):
        names = _VARIABLE.findall(url)
        for name in names:
            if not os.environ.get(name):
                raise BadInputError(f"{url} needs the environment variable {name}, which is not set.")
        self.url = url
        in_user = _IN_USER.sub(lambda match: quote(os.environ[match[1]], safe=""), url)
        self.value = _VARIABLE.sub(lambda match: os.environ[match[1]], in_user)
        shown_as = {os.environ[name]: f"${{{name}}}" for name in names}
        if names:  # the whole URL may be a variable; libraries also repeat parts of it
            parts = urlsplit(self.value)
            values = (parts.password or "", *(value for _, value in _SETTING.findall(parts.query)))
            shown_as = {**dict.fromkeys(filter(None, values), "***"), **shown_as}
        self._shown_as = {
            form: shown
            for value, shown in sorted(shown_as.items(), key=lambda item: -len(item[0]))
            for form in (value, quote(value, safe=""), unquote(value))
        }

    def hide_values(self, text: str) -> str:
        """Returns a message in which the names of the variables take the place of their values."""
        for value, shown in self._shown_as.items():
            text = text.replace(value, shown)
        return text
