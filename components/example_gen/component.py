"""CsvExampleGen: TFX's own."""

from tfx.components.example_gen.csv_example_gen.component import CsvExampleGen

__all__ = ["CsvExampleGen"]
