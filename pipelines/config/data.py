"""`[data]`, `[columns]` and `[split]` of a configuration: the data to learn from."""

import codecs
import re
from fractions import Fraction
from typing import Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    StrictInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from pipelines.config.data_url import check_url, is_url
from pipelines.config.span_pattern import parse_span_pattern
from pipelines.config.span_selection import NEWEST, SpanSelection, parse_selection

ProblemType = Literal["binary", "multi-class", "regression"]

ColumnUse = Literal["number", "category", "date", "list", "text", "id", "ignore"]

TRAIN_SHARE = Fraction(2, 3)
"""Share of the rows that train, of those that do not test."""

MIN_TEST_SHARE = 0.01


class Section(BaseModel):
    """A table of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)


def matches(pattern: str, advice: str) -> AfterValidator:
    """Returns a validator of text; the advice may show it as `{text!r}`."""
    expression = re.compile(pattern)

    def check(text: str) -> str:
        if not expression.fullmatch(text):
            raise ValueError(advice.format(text=text))
        return text

    return AfterValidator(check)


class DataConfig(Section):
    """`[data]`: the place of the examples and the meaning of their columns.

    Attributes:
        path: CSV (also `.csv.gz`, `.csv.zst` or `.csv.bz2`) or Parquet file, folder, or pattern. With
            `{SPAN}` or a date, and `{VERSION}`, it has spans. It may be a URL of such files, or of a database
            for `query`; `${NAME}` in a URL is the value of an environment variable.
        query: SQL query whose rows are the data.
        label: Raw column to predict. With a `[module]`: the column from which it computes its label.
        spans: Spans of the path to read: `newest`, `last 5`, a single one, or a range.
        problem_type: `binary`, `multi-class` or `regression`. Default: inferred from the label.
        positive: Class of two that precision, recall, F1 and the decision threshold are about. Default: the
            class that means yes, or the last in order.
        weight: Column of numbers that weigh the rows in training and evaluation. It is not a feature.
            Default: all rows weigh the same.
        exclude: Columns that the model does not use; the same as `"ignore"` in `[columns]`.
        numeric: Columns to treat only as numbers, regardless of the inference.
        categorical: Columns to treat as categories, regardless of the inference.
        delimiter: Character between the fields of a row. Default: detected.
        quote: Character around a field that contains a delimiter. Default: detected.
        encoding: Encoding of the files, by its name in Python. Default: detected.
        decimal: Decimal mark of numbers. Default: detected, column by column.
        on_bad_row: Action for a row that cannot be read, such as one with too few cells: `fail`, or
            `quarantine`, which leaves it out and keeps it in a file.
        dates: First part of a date such as 03/04/2014. Default: detected, column by column.
    """

    path: str
    label: str
    query: str | None = None
    spans: str = str(NEWEST)
    problem_type: ProblemType | None = None
    positive: str | StrictInt | None = None
    weight: str | None = None
    exclude: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    delimiter: str | None = None
    quote: Literal['"', "'"] | None = None
    encoding: str | None = None
    decimal: Literal[".", ","] | None = None
    on_bad_row: Literal["fail", "quarantine"] = "fail"
    dates: Literal["day-first", "month-first"] | None = None

    @field_validator("path")
    @classmethod
    def _is_a_pattern(cls, path: str) -> str:
        parse_span_pattern(path)
        return check_url(path) if is_url(path) else path

    @field_validator("query")
    @classmethod
    def _has_a_database(cls, query: str | None, info: ValidationInfo) -> str | None:
        path = info.data.get("path")
        if query is not None and path is not None and not is_url(path):
            raise ValueError("data.path is the database, as in postgresql://db.example.com/shop")
        return query

    @field_validator("spans", mode="before")
    @classmethod
    def _is_a_selection(cls, spans: Any, info: ValidationInfo) -> str:
        selection = parse_selection(spans)
        path = info.data.get("path")
        if path is None:  # it is invalid, which is reported separately
            return str(selection)
        pattern = parse_span_pattern(path)
        if pattern is None and selection != NEWEST:
            raise ValueError(
                "data.path has no {SPAN}, nor {YYYY}, {MM} and {DD}: write it where the name of the span "
                "would be, as in data/span-{SPAN}/"
            )
        if pattern is not None and selection.is_by_date not in (None, pattern.is_by_date):
            kind = "dates: write 2026-01-31" if pattern.is_by_date else "numbers: write 7, or 3..7"
            raise ValueError(f"the spans of data.path are {kind}")
        return str(selection)

    @property
    def selection(self) -> SpanSelection:
        return parse_selection(self.spans)

    @field_validator("delimiter")
    @classmethod
    def _is_one_character(cls, delimiter: str | None) -> str | None:
        if delimiter is not None and (
            len(delimiter) != 1 or not delimiter.isascii() or delimiter in "\"'\r\n\0"
        ):
            raise ValueError(
                'a delimiter is one character, not a quote or line break: ",", ";", "\\t" or "|"'
            )
        return delimiter

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, encoding: str | None) -> str | None:
        try:
            return None if encoding is None else codecs.lookup(encoding).name
        except LookupError as error:
            raise ValueError(
                'Python has no such encoding; usual ones are "utf-8", "cp1252" and "utf-16"'
            ) from error


class SplitConfig(Section):
    """`[split]`: the division of the rows into those that train, those that evaluate, and those that test.

    Attributes:
        by: `row` draws a third of the rows for evaluation, by a hash of the row and the number of its copy.
            `column` draws a third of the values of a column, with all their rows. `time` takes the newest
            third by a column. `files` takes files as they are.
        column: Name of the column for `column` and `time`.
        train: Training data for `files`: a file, or a pattern of files, in the folder `data.path`.
        eval: Evaluation data for `files`: a file, or a pattern of files, in the folder `data.path`.
        test: Share of the rows that are used only for the last line of the report, such as 0.2; with `column`
            the share of the values, with `time` the newest rows, and for `files` a file, or a pattern of
            files. The other rows are divided as without it. Default: none.
        on_label_difference: Action if the distribution of the label differs between the splits by more than
            chance explains: `stop` or `warn`. Default: `stop`; with `column` and `time` `warn`, because
            groups and times may really differ.
    """

    by: Literal["row", "column", "time", "files"] = "row"
    column: str | None = None
    train: str | None = None
    eval: str | None = None
    test: float | str | None = None
    on_label_difference: Literal["stop", "warn"] | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "SplitConfig":
        needed = {"column": ("column",), "time": ("column",), "files": ("train", "eval")}
        for key in ("column", "train", "eval"):
            wanted = key in needed.get(self.by, ())
            if wanted and not getattr(self, key):
                raise ValueError(f'by = "{self.by}" needs {key} = "..."')
            if not wanted and getattr(self, key) is not None:
                raise ValueError(f'{key} has no effect with by = "{self.by}"; remove one of the two')
        if isinstance(self.test, str) != (self.by == "files") and self.test is not None:
            form = 'a file or a pattern, such as "test.csv"' if self.by == "files" else "a share, such as 0.2"
            raise ValueError(f'with by = "{self.by}", test is {form}. Received: {self.test!r}')
        if isinstance(self.test, float) and not MIN_TEST_SHARE <= self.test <= 1 - MIN_TEST_SHARE:
            raise ValueError(
                f"test is a share of the rows, from {MIN_TEST_SHARE} to {1 - MIN_TEST_SHARE}. "
                f"Received: {self.test}"
            )
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the splits, in the order of time."""
        return ("train", "eval") if self.test is None else ("train", "eval", "test")

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Share of the rows of each split; for `files` a guess."""
        test = Fraction(self.test).limit_denominator(1_000) if isinstance(self.test, float) else Fraction()
        shares = (TRAIN_SHARE * (1 - test), (1 - TRAIN_SHARE) * (1 - test), test)
        return shares[: len(self.names)]

    @property
    def stops_at_label_difference(self) -> bool:
        """True if a run stops when the distribution of the label differs between the splits."""
        action = self.on_label_difference
        return action == "stop" or (action is None and self.by in ("row", "files"))
