"""Will a pump fail within a week? A TPUEstimator."""
