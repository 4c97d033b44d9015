"""`[serving_check]`: what the model to be pushed must show."""

from pydantic import Field

from pipelines.config.data import Section


class ServingCheckConfig(Section):
    """`[serving_check]`: the comparison of the model to be pushed with the one that was judged, and limits.

    A run whose measurement is above a limit fails, and the next run measures again.

    Attributes:
        enabled: Asks the model before it is pushed.
        rows: Number of rows of the evaluation split to ask for.
        tolerance: Largest difference of a number, relative to its size plus the typical size.
        max_latency_ms: Limit of the 99th percentile of the time of a call with one row. Default: no limit.
        max_load_seconds: Limit of the time that loading takes. Default: no limit.
        max_memory_mb: Limit of the memory that the model adds to a process. Default: no limit.
        warmup: Writes warm-up requests for TensorFlow Serving into the version. They contain up to 5 rows
            of the data, without the label.
    """

    enabled: bool = True
    rows: int = Field(default=1000, ge=1)
    tolerance: float = Field(default=1e-4, ge=0, lt=1)
    max_latency_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_load_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_memory_mb: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    warmup: bool = True
