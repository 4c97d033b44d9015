"""`[gate]`: treatment of a model whose data are doubted."""

from typing import Literal

from pipelines.config.data import Section


class GateConfig(Section):
    """`[gate]`: treatment of a model whose data are doubted.

    The doubts: the new data differ in what they mean, a column predicts the label by itself, or the model is
    worse than the one in production in a part of the data. They are made with the default checks.

    Attributes:
        doubts: `hold` keeps the model and pushes nothing, until `approve` or `approve --reject` decides;
            `warn` pushes it with a warning.
    """

    doubts: Literal["hold", "warn"] = "hold"
