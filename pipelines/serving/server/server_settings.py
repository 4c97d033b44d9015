"""Settings of a server."""

from dataclasses import dataclass, field

from pipelines.serving.server.batching import BatchLimits
from pipelines.serving.server.connections import ConnectionLimits


@dataclass(frozen=True)
class ServerSettings:
    batches: BatchLimits = field(default_factory=BatchLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    # Size of a request's body, also after it was unzipped; a larger one has status 413.
    max_body_bytes: int = 16 << 20
    poll_secs: float = 1.0  # Time between two looks for new versions
    monitor_secs: float = 10.0  # Time after which sampled requests are written and compared
    grpc_address: str | None = None
    token: str | None = None  # Token that each request must carry, except those for health; None for none
