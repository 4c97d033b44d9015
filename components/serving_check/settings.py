"""Settings of the ServingCheck."""

import dataclasses
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class ServingCheckSettings:
    """Extent of the comparison, and limits of the measurements.

    Attributes:
        enabled: False blesses every model without asking it.
        rows: Number of rows to send, from all over the split.
        tolerance: Largest difference of a number, relative to its size plus the typical size.
        max_latency_ms: Limit of the 99th percentile of calls with one row; None without one.
        max_load_seconds: Limit of the time that loading takes; None without one.
        max_memory_mb: Limit of the memory that the model adds to a process; None without one.
        warmup: True to write warm-up requests for TensorFlow Serving. They contain rows of the data.
    """

    enabled: bool = True
    rows: int = 1000
    tolerance: float = 1e-4
    max_latency_ms: float | None = None
    max_load_seconds: float | None = None
    max_memory_mb: float | None = None
    warmup: bool = True

    def __post_init__(self) -> None:
        for name in ("rows", "max_latency_ms", "max_load_seconds", "max_memory_mb"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0. Received: {name}={value!r}")
        if not 0 <= self.tolerance < 1:
            raise ValueError(
                f"tolerance must be at least 0 and below 1. Received: tolerance={self.tolerance!r}"
            )

    def to_json(self) -> str:
        """Returns the settings as JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "ServingCheckSettings":
        """Returns the settings from the text of `to_json`; the default for None."""
        return cls(**json.loads(text or "{}"))
