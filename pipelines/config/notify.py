"""`[notify]` of the configuration: the receivers of notifications about scheduled runs."""

import shlex
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from pipelines.config.data import Section

Event = Literal["pushed", "unchanged", "finished", "held", "not_blessed", "failed", "drifted", "missed"]


class NotifyConfig(Section):
    """`[notify]`: the receivers of notifications about scheduled runs.

    Records and compiled pipelines leave it out, because an address may be a secret.

    Attributes:
        command: Program with its arguments, run without a shell; it gets the JSON on its standard input.
        webhook: Address, http or https, that the JSON is POSTed to.
        webhook_env: Name of the scheduler's environment variable that holds this address, in place of
            `webhook`.
        on: Events to report: `failed`, `not_blessed`, `held` (a model waits for a decision), `drifted` (a
            column's values have changed, or the data do not fit the schema), `missed` (a run did not start
            when it should have), `pushed`, `unchanged`, `finished` (a TFX pipeline of your own without a
            Pusher).
        timeout_secs: Time limit of one attempt, for each receiver.
    """

    command: str | None = Field(default=None, repr=False)
    webhook: str | None = Field(default=None, repr=False)
    webhook_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    on: tuple[Event, ...] = ("failed", "held", "not_blessed", "drifted", "missed")
    timeout_secs: float = Field(default=10, gt=0, le=600, allow_inf_nan=False)

    @property
    def has_receiver(self) -> bool:
        return bool(self.command or self.webhook or self.webhook_env)

    @field_validator("command")
    @classmethod
    def _is_a_command(cls, command: str | None) -> str | None:
        if command is not None and not shlex.split(command):
            raise ValueError('name a program, such as command = "/usr/local/bin/tell-me"')
        return command

    @field_validator("webhook")
    @classmethod
    def _is_an_address(cls, webhook: str | None) -> str | None:
        if webhook is not None:
            parts = urlsplit(webhook)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError('give an address such as webhook = "https://example.com/hook"')
        return webhook
