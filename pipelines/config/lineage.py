"""`[lineage]` of a configuration: the receiver of the runs' OpenLineage events."""

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from pipelines.config.data import Section


class LineageConfig(Section):
    """`[lineage]`: OpenLineage events of the runs and their steps. Without the section there are none.

    An API key is in the environment variable `OPENLINEAGE_API_KEY`: it is in no record and no log.

    Attributes:
        openlineage: Receiver of the events: `file` appends them to `runs/openlineage.jsonl` in the root,
            one a line; an http or https address gets each as a POST. An address without a path means
            `/api/v1/lineage` there.
        namespace: OpenLineage namespace of the jobs and the artifacts. Default: the name of the pipeline.
    """

    openlineage: str | None = None
    namespace: str | None = Field(default=None, min_length=1)

    @field_validator("openlineage")
    @classmethod
    def _is_file_or_address(cls, openlineage: str | None) -> str | None:
        if openlineage in (None, "file"):
            return openlineage
        try:
            parts = urlsplit(openlineage)
            is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ValueError('give "file", or an address such as "https://marquez.example:5000"')
        if parts.username is not None:
            raise ValueError(
                "a user name or password in the address would be stored in every record; set the environment "
                "variable OPENLINEAGE_API_KEY instead"
            )
        return openlineage
