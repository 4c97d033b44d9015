"""Finds rows that belong together but may be in different splits, and categories that are spelled twice."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.config.data import SplitConfig
from pipelines.config.toml import toml_text
from pipelines.data.column_cells import ColumnCells
from pipelines.data.formats.arrow_reading import read_times
from pipelines.data.kinds import ColumnKind, to_date_format
from pipelines.data.missing import find_missing
from pipelines.data.profile import CsvProfile
from pipelines.data.word_kinds import is_called_id

_MIN_COPIES = 5
_MIN_COPY_SHARE = 1e-4
_MIN_TIMES_CHANCE = 10  # of equal rows, compared with what chance explains
_MOST_COMMON = 0.5  # chance that two rows have the same cell; a column with more tells nothing

_PERSON = re.compile(
    r"(^|[^a-z])(customer|client|user|patient|person|subject|participant|member|account|household|employee"
    r"|driver|student|player|passenger|visitor|session|device|machine|vehicle|e?mail|ssn)s?"
    r"([ _-]?(id|no|nr|num|number|key|code|uuid|hash|name))?$"
)
_CODE = r"^\S*[0-9]\S*$"
_MIN_ENTITIES = 20
_MIN_REPEATED_SHARE = 0.01  # of the rows
_MAX_ROWS_OF_ID = 100  # on average; a more frequent id is a category, such as that of a shop
_MAX_CELLS = 1_000_000

_NUM_TIMES = 200
_MIN_TIMES = 20  # different ones
_MIN_SORTED = 0.9  # Kendall's rank correlation of time and position

_MAX_SPELLED = 2_000  # different values; more are codes, in which case matters
_SHOWN = 3


def find_pitfalls(
    profile: CsvProfile, kinds: Mapping[str, ColumnKind], split: SplitConfig, label: str
) -> Iterator[str]:
    """Yields a sentence for each pitfall; an explicit `split.by = "row"` accepts those of the split."""
    if split.by == "row" and "by" not in split.model_fields_set and profile.sample is not None:
        if are_copied(profile):
            num_copies, num_rows = profile.copies.num_copies, profile.num_rows
            yield (
                f"{num_copies} of {num_rows} rows are copies of other rows, so a model may be evaluated on "
                "rows that it has seen. Remove the copies, or keep them in one split: "
                f"{_by_column('NAME')} with the NAME of an id"
            )
        for name, share in repeated_entities(profile, kinds, label):
            yield (
                f"column {name!r}: {share:.0%} of the rows repeat the value of another row, which may be in "
                f"another split. If the model has to work for new values: {_by_column(toml_text(name))}"
            )
        if time := time_of_order(profile, kinds):
            yield (
                f"the rows are sorted by {time!r}. If the model has to predict later rows, evaluate it on "
                f'the newest rows: [split] by = "time", column = {toml_text(time)}'
            )
    for name, kind in kinds.items():
        if kind.name == "category":
            yield from _spellings(profile, name)


def _by_column(name: str) -> str:
    return f'[split] by = "column", column = {name}'


def are_copied(profile: CsvProfile) -> bool:
    """Returns whether more rows are equal than in a table whose rows are equal by chance.

    In such a table many more rows differ in a single column than in none, unless other columns determine it,
    or its cells are equal by chance ten times less often.
    """
    if profile.copies.num_copies < max(_MIN_COPIES, _MIN_COPY_SHARE * profile.num_rows):
        return False
    positions = range(len(profile.columns))
    of_rows: Any = sum(_hashes(profile, position) for position in positions)  # modulo 2**64
    num_rows = of_rows.size
    scale = (profile.num_rows / num_rows) ** 2  # pairs of all rows, for each pair of the sample
    num_pairs = max(1, num_rows * (num_rows - 1) / 2)
    num_copied, num_equal = profile.copies.num_pairs, _num_pairs(of_rows)
    tells = False
    for position in positions:
        hashes = _hashes(profile, position)
        num_same = _num_pairs(hashes)
        if num_same <= _MOST_COMMON * num_pairs:
            num_near = scale * (_num_pairs(of_rows - hashes) - num_equal)
            num_by_chance = (num_same - num_equal) / num_pairs * (num_near + num_copied)
            if num_copied < min(num_near, _MIN_TIMES_CHANCE * num_by_chance):
                return False
            tells = True
    return tells


def _hashes(profile: CsvProfile, position: int) -> Any:
    """Returns a random number (uint64) for each different cell of a column of the sample."""
    codes = profile.sample.column(position).dictionary_encode()  # type: ignore[union-attr]
    draw = np.random.default_rng(position)
    return draw.integers(0, 1 << 63, len(codes.dictionary), np.uint64)[codes.indices.to_numpy()]


def _num_pairs(values: Any) -> int:
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def repeated_entities(
    profile: CsvProfile, kinds: Mapping[str, ColumnKind], label: str
) -> Iterator[tuple[str, float]]:
    """Yields the columns of ids that repeat, with the share of the rows whose id repeats."""
    for name, column in profile.columns.items():
        kind, cells = kinds[name], ColumnCells(profile, name)
        may_be = kind.name in ("id", "category") or (kind.name == "number" and column.type == "integer")
        is_feature = kind.is_given and kind.name != "id"  # the model is for values that it knows
        if name == label or is_feature or not may_be or column.num_distinct == column.num_values:
            continue
        is_person = _PERSON.search(_as_words(name)) is not None
        if not (is_person or is_called_id(name) or (kind.name == "id" and cells.all_match(_CODE))):
            continue
        counts = _occurrences(cells)
        num_cells = counts.sum()
        if len(counts) < _MIN_ENTITIES or not (is_person or num_cells <= _MAX_ROWS_OF_ID * len(counts)):
            continue
        share = counts[counts > 1].sum() / num_cells
        if share >= _MIN_REPEATED_SHARE:
            yield name, float(share)


def _as_words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _occurrences(cells: ColumnCells) -> Any:
    """Returns the number of occurrences of each value, of a column with very many in its first cells."""
    import pyarrow.compute as pc

    counted = cells.profile.columns[cells.column].distinct_values
    if counted is not None:
        return counted.occurrences
    parts, num_cells = [], 0
    for values, counts in cells.chunks():
        parts.append(values.take(pa.array(np.repeat(np.arange(len(values)), counts))))
        num_cells += len(parts[-1])
        if num_cells >= _MAX_CELLS:
            break
    return pc.value_counts(pa.chunked_array(parts)).field(1).to_numpy()


def time_of_order(profile: CsvProfile, kinds: Mapping[str, ColumnKind]) -> str | None:
    """Returns the column of dates by which the rows are sorted, up or down; None if there is none."""
    for position, name in enumerate(profile.columns):
        date_format = to_date_format(kinds[name])
        if date_format is None or profile.sample is None:
            continue
        cells = profile.sample.column(position)
        times = read_times(find_missing(cells.take(_spread(len(cells))))[0], date_format)
        secs = times.utc_secs[times.is_valid]
        if np.unique(secs).size < _MIN_TIMES:
            continue
        pairs = np.sign(secs[:, None] - secs)[np.triu_indices(secs.size)]
        if abs(pairs.sum()) >= _MIN_SORTED * np.count_nonzero(pairs):
            return name
    return None


def _spread(num_rows: int) -> Any:
    """Returns positions of a few rows, as far apart from each other as possible."""
    return pa.array(np.unique(np.linspace(0, num_rows - 1, _NUM_TIMES).astype(np.int64)))


def _spellings(profile: CsvProfile, name: str) -> Iterator[str]:
    """Yields a sentence if categories differ only in case or white space."""
    counts = profile.columns[name].distinct_values
    if counts is None or len(counts) > _MAX_SPELLED:
        return
    by_word: dict[str, list[str]] = {}
    for text in counts:
        by_word.setdefault(" ".join(text.casefold().split()), []).append(text)
    found = [texts for texts in by_word.values() if len(texts) > 1]
    if found:
        shown = "; ".join(
            " and ".join(f"{text!r} ({counts[text]})" for text in texts)
            for texts in itertools.islice(found, _SHOWN)
        )
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield (
            f"column {name!r}: {shown}{more} differ only in case or white space, but are different "
            "categories. Use one spelling in the data and in requests"
        )
