"""Speed against the peers: each benchmark measures both sides in one run and prints the ratio."""
