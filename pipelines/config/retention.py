"""`[retention]` of a configuration: rules for removing old runs and artifacts from a root."""

from pydantic import Field, model_validator

from pipelines.config.data import Section


class RetentionConfig(Section):
    """`[retention]`: applied at the end of each run, and by `prune`. Without a key, nothing is removed.

    The versions that serve or can be rolled back to, the data that new data are compared with, and the files
    that `--resume` needs always stay. The number of versions below `serving` is `pusher.keep`.

    Attributes:
        runs: Number of newest runs whose record, report and log stay. A run is removed if no rule keeps it.
        days: Number of days for which runs keep their record, report and log.
        artifacts: Number of newest runs whose artifacts stay: data, statistics, models, evaluations. The
            cache cannot use those of other runs. Default: all runs with a record.
        checkpoints: Number of newest runs whose training directory stays, which takes most of a run's
            space. The training of an older run is not taken from the cache. Default: the same as
            `artifacts`.
    """

    runs: int | None = Field(default=None, ge=1)
    days: int | None = Field(default=None, ge=1)
    artifacts: int | None = Field(default=None, ge=1)
    checkpoints: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _checkpoints_are_artifacts(self) -> "RetentionConfig":
        if self.artifacts and self.checkpoints and self.checkpoints > self.artifacts:
            raise ValueError(
                f"checkpoints = {self.checkpoints} is above artifacts = {self.artifacts}: checkpoints are "
                "artifacts of a run; raise artifacts or lower checkpoints"
            )
        return self

    @property
    def is_empty(self) -> bool:
        """True if there are no rules, so that nothing is removed."""
        return self == RetentionConfig()
