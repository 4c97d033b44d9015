"""Settings of a server."""

from dataclasses import dataclass, field

from pipelines.serving.server.batching import BatchLimits
from pipelines.serving.server.connections import ConnectionLimits


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server.

    Attributes:
      batches: Limits of batches.
      connections: Limits of connections.
      max_body_bytes: Size of a request's body, also after it was unzipped; a larger one has status 413.
      poll_secs: Time between two looks for new versions.
      monitor_secs: Time after which sampled requests are written and compared.
      grpc_address: Address and port for gRPC; None for none.
      token: Token that each request must carry, except those for health; None for none.
    """

    batches: BatchLimits = field(default_factory=BatchLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    max_body_bytes: int = 16 << 20
    poll_secs: float = 1.0
    monitor_secs: float = 10.0
    grpc_address: str | None = None
    token: str | None = None
