"""`[metadata]` of a configuration: the store of ML Metadata."""

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from pipelines.config.data import Section

PASSWORD_VARIABLE = "PIPELINES_METADATA_PASSWORD"
"""Environment variable with the password, if the configuration does not have it."""

_PORT = 3306


class MetadataConfig(Section):
    """`[metadata]`: the store of ML Metadata.

    Attributes:
      url: Address `mysql://user@host:3306/database`; the database must exist, and several roots may share
        it. A password in it is removed: no record and no log has it. Default: a SQLite file in the root.
      password: Password of the user. Default: the URL's, or that in `PIPELINES_METADATA_PASSWORD`. It is
        never written anywhere.
    """

    url: str | None = None
    password: SecretStr | None = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _take_the_password_out(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("url"), str):
            return given
        before, at, place = given["url"].rpartition("@")
        scheme, slashes, user = before.partition("://")
        name, colon, password = user.partition(":")
        if not (at and slashes and colon):
            return given
        taken = {**given, "url": f"{scheme}://{name}@{place}"}
        if given.get("password") is None:
            taken["password"] = unquote(password)
        return taken

    @field_validator("url")
    @classmethod
    def _names_a_database(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            has_port = parts.port != 0
        except ValueError as error:
            raise ValueError(
                f"it is not a URL ({error}); give mysql://user@host:3306/database"
            ) from error
        database = parts.path.strip("/")
        if parts.scheme != "mysql" or not (
            parts.hostname and parts.username and database and has_port
        ):
            raise ValueError("give mysql://user@host:3306/database")
        if "/" in database or parts.query or parts.fragment:
            raise ValueError("it has more than a database; give mysql://user@host:3306/database")
        return url

    def mysql(self) -> dict[str, Any]:
        """Returns the fields of ML Metadata's `MySQLDatabaseConfig`; there is a URL."""
        parts = urlsplit(str(self.url))
        password = (
            self.password.get_secret_value()
            if self.password is not None
            else os.environ.get(PASSWORD_VARIABLE, "")
        )
        return {
            "host": parts.hostname,
            "port": parts.port or _PORT,
            "database": parts.path.strip("/"),
            "user": unquote(parts.username or ""),
            "password": password,
        }
