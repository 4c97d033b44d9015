"""Settings of the ServingCheck."""

import json

from pydantic import BaseModel, ConfigDict, Field


class ServingCheckSettings(BaseModel):
    """The comparison of the model to be pushed with the evaluated one, and limits of the measurements.

    A run whose measurement is above a limit fails, and the next run measures again.

    Attributes:
        enabled: False pushes without testing the exported model.
        rows: Number of rows of the evaluation split to send, from all over it.
        tolerance: Largest difference of a number, relative to its size plus the typical size.
        max_latency_ms: Limit of the 99th percentile of the time of a call with one row. Default: no limit.
        max_load_seconds: Limit of the time that loading takes. Default: no limit.
        max_memory_mb: Limit of the memory that the model adds to a process. Default: no limit.
        warmup: Writes warm-up requests for TensorFlow Serving into the version. They contain up to 5 rows
            of the data, without the label.

    Raises:
        ValueError: A number is out of its range, or there is no such setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    rows: int = Field(default=1000, ge=1)
    tolerance: float = Field(default=1e-4, ge=0, lt=1)
    max_latency_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_load_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_memory_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    warmup: bool = True

    def to_json(self) -> str:
        """Returns the settings as JSON, for an execution property."""
        return json.dumps(self.model_dump())

    @classmethod
    def from_json(cls, text: str | None) -> "ServingCheckSettings":
        """Returns the settings from the text of `to_json`; the default for None."""
        return cls(**json.loads(text or "{}"))
