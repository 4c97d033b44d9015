"""What the ways of running in a cluster share: servers, collectives, the chief's model."""
