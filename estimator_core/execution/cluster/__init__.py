"""Parts shared by the ways of running in a cluster: servers, collectives, the chief's model."""
