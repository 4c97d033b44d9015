"""Security context of the containers that this project describes for Kubernetes.

Source: the profile *restricted* of Kubernetes' Pod Security Standards.
"""

from typing import Any


def restricted() -> dict[str, Any]:
    """Returns the security context of a container that a namespace with the profile *restricted* admits."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
