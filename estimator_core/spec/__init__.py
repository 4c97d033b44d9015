"""What every part of the core shares: `EstimatorSpec`, calling the user's functions, modes and keys."""
