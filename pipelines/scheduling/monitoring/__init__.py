"""The state of schedules for other tools: metrics, an overview, manifests of systemd and Kubernetes."""
