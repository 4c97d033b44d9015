"""Delivers a notification to the user's command and webhook."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from pipelines.config.notify import NotifyConfig
from pipelines.scheduling.notify.command import run
from pipelines.scheduling.notify.delivery_error import DeliveryError
from pipelines.scheduling.notify.webhook import post

Deliver = Callable[[NotifyConfig, Mapping[str, Any]], None]
"""Function that sends the JSON of a notification; raises DeliveryError."""


def deliver(config: NotifyConfig, content: Mapping[str, Any]) -> None:
    """Sends a notification to all receivers.

    Args:
      config: Settings with the receivers.
      content: Content as JSON values.

    Raises:
      DeliveryError: A receiver did not accept it; the message holds none of its secrets.
    """
    body = json.dumps(content, allow_nan=False).encode()
    problems, taken = [], []
    for name, send, receiver in (
        ("command", run, config.command),
        ("webhook", post, _webhook(config)),
    ):
        if receiver is not None:
            try:
                send(receiver, body, config.timeout_secs)
            except DeliveryError as error:
                problems.append(str(error))
            else:
                taken.append(name)
    if problems:
        raise DeliveryError("; ".join(problems), tuple(taken))


def _webhook(config: NotifyConfig) -> str | None:
    if config.webhook_env is None:
        return config.webhook
    # A missing address counts as unreachable: it is reported, and tried again.
    return os.environ.get(config.webhook_env, "").strip()
