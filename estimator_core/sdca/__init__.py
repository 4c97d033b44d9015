"""Stochastic dual coordinate ascent: trains linear models without a learning rate."""

from estimator_core.sdca.linear_sdca import LinearSDCA

__all__ = ["LinearSDCA"]
