"""`[retention]` of a configuration: how long a root keeps what runs have made."""

from pydantic import Field, model_validator

from pipelines.config.data import Section


class RetentionConfig(Section):
    """`[retention]`: applied at the end of each run, and by `prune`. Without a key nothing is removed.

    What serves, what can be rolled back to, what new data are compared with and what `--resume` needs
    stay, whatever the numbers say. How many versions stay below `serving` is `pusher.keep`.

    Attributes:
      runs: Newest runs whose record, report and log stay. A run goes when no rule keeps it.
      days: Runs that began in so many days keep their record, report and log.
      artifacts: Newest runs whose artifacts stay: data, statistics, models, evaluations. The cache can
        take nothing of the others. Default: those of all runs that have a record.
      checkpoints: Newest runs whose training directory stays, which is most of what a run takes. Then the
        training of an older run is not taken from the cache. Default: as `artifacts`.
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
        """Whether there is no rule, and so nothing to remove."""
        return self == RetentionConfig()
