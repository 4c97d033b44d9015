# ruff: noqa: E501, RUF001
"""Legal files that are unusual: their cells are those that pandas reads, an independent library."""

import bz2
import gzip

import numpy as np
import pandas as pd
import pytest

ROWS = "".join(f"{number},{'xyz'[number % 3]}\n" for number in range(30))


def rows(*cells, header="n,t"):
    """Returns a file with rows before and behind some cells of the second column."""
    return "\n".join([header, "0,a", *(f"{at},{cell}" for at, cell in enumerate(cells, 1)), "9,z"]) + "\n"


def column(*cells, name="n"):
    """Returns a file whose second column has these cells."""
    return f"t,{name}\n" + "".join(f"{'abc'[place % 3]},{cell}\n" for place, cell in enumerate(cells))


# Text, and how pandas has to be told to read it.
LEGAL = {
    "a line break in quotes": (rows('"one\ntwo"'), {}),
    "a Windows line break in quotes": (rows('"one\r\ntwo"').replace("\n", "\r\n").replace("\r\r", "\r"), {}),
    "a carriage return in quotes": (rows('"one\rtwo"'), {}),
    "empty lines in quotes": (rows('"one\n\n\ntwo"'), {}),
    "a line break at the end of quotes": (rows('"one\n"'), {}),
    "a line break alone in quotes": (rows('"\n"'), {}),
    "a delimiter in quotes": (rows('"one, two"'), {}),
    "delimiters alone in quotes": (rows('",,,"'), {}),
    "doubled quotes": (rows('"say ""hi"""'), {}),
    "quotes alone in quotes": (rows('""""""'), {}),
    "all cells in quotes": ('"n","t"\n' + "".join(f'"{number}","x"\n' for number in range(30)), {}),
    "numbers in quotes": (column('"1"', '"2"', '"3"'), {}),
    "quotes around half of the cells": ("n,t\n" + "".join(f'{number},"x{number}"\n' for number in range(30)), {}),
    "quotes in the middle of a cell": (rows('5" disk', '6" disk'), {}),
    "one quote in the middle of a cell": (rows('5" disk'), {}),
    "an apostrophe": (rows("don't", "'tis"), {}),
    "single quotes around delimiters": ("n,t\n" + "".join(f"{number},'a, b'\n" for number in range(30)), {"quotechar": "'"}),
    "spaces around cells": (rows("  a  ", " b", "c "), {}),
    "tabs around cells": (rows("\ta\t"), {}),
    "spaces alone": (rows("   ", " "), {}),
    "spaces alone in quotes": (rows('"   "'), {}),
    "spaces behind quotes": (rows('"a"  ', '"b" '), {}),
    "a space before quotes": (rows(' "a"'), {}),
    "no-break spaces": (rows("\u00a0", "a\u00a0b", "\u00a0a"), {}),
    "a space of no width": (rows("\u200b", "a\u200bb"), {}),
    "a byte order mark within a cell": (rows("a\ufeffb", "\ufeffc"), {}),
    "a vertical tab and a form feed": (rows("a\x0bb", "a\x0cb"), {}),
    "control characters": (rows("a\x01b", "\x7f", "\x1b[0m"), {}),
    "separators of Unicode": (rows("a\u2028b", "a\u2029b", "a\u0085b"), {}),
    "a separator of ASCII": (rows("a\x1cb", "a\x1db", "a\x1eb"), {}),
    "semicolons": (ROWS.replace(",", ";").join(["n;t\n", ""]), {"sep": ";"}),
    "tabs": ("n\tt\n" + ROWS.replace(",", "\t"), {"sep": "\t"}),
    "vertical bars": ("n|t\n" + ROWS.replace(",", "|"), {"sep": "|"}),
    "semicolons and decimal commas": ("n;t\n" + "".join(f"{number},5;x\n" for number in range(30)), {"sep": ";"}),
    "semicolons and delimiters in quotes": ("n;t\n" + '1;"a;b"\n2;"c;""d"""\n' * 15, {"sep": ";"}),
    "tabs and commas in cells": ("n\tt\n" + "1\ta, b\n2\tc\n" * 15, {"sep": "\t"}),
    "commas and semicolons in cells": ("n,t\n" + "1,a; b\n2,c\n" * 15, {}),
    "a delimiter that is configured": ("n:t\n" + ROWS.replace(",", ":"), {"sep": ":"}),
    "a byte order mark": ("\ufeffn,t\n" + ROWS, {}),
    "a byte order mark and a quoted header": ('\ufeff"n","t"\n' + ROWS, {}),
    "UTF-16": (("n,t\n" + ROWS + "40,é\n").encode("utf-16"), {"encoding": "utf-16"}),
    "UTF-16 of big endian": (b"\xfe\xff" + ("n,t\n" + ROWS + "40,é\n").encode("utf-16-be"), {"encoding": "utf-16"}),
    "Windows-1252": (("n,t\n" + ROWS + "40,café €\n").encode("cp1252"), {"encoding": "cp1252"}),
    "Latin-1": (("n,t\n" + ROWS + "40,café\n").encode("latin-1"), {"encoding": "latin-1"}),
    "Polish letters, whose encoding is configured": (("n,t\n" + ROWS + "40,Łódź\n").encode("cp1250"), {"encoding": "cp1250"}),
    "an encoding that is configured": (("n,t\n" + ROWS + "40,Ж\n").encode("koi8-r"), {"encoding": "koi8-r"}),
    "Windows line ends": (("n,t\n" + ROWS).replace("\n", "\r\n"), {}),
    "line ends of old Macs": (("n,t\n" + ROWS).replace("\n", "\r"), {}),
    "both line ends": ("n,t\r\n" + ROWS + ROWS.replace("\n", "\r\n"), {}),
    "no final line end": (("n,t\n" + ROWS)[:-1], {}),
    "no final line end behind quotes": ("n,t\n" + ROWS + '40,"a\nb"', {}),
    "no final line end behind a delimiter": ("n,t\n" + ROWS + "40,", {}),
    "blank lines between rows": ("n,t\n\n" + ROWS.replace("\n", "\n\n"), {}),
    "blank lines before the header": ("\n\n\nn,t\n" + ROWS, {}),
    "blank lines at the end": ("n,t\n" + ROWS + "\n\n\n", {}),
    "blank Windows lines": (("n,t\n" + ROWS + "\n\n").replace("\n", "\r\n"), {}),
    "empty cells": (rows("", "a", ""), {}),
    "empty cells in quotes": (rows('""', "a", '""'), {}),
    "a row of empty cells": ("n,t\n1,a\n,\n2,b\n", {}),
    "an empty column": ("n,e,t\n" + "1,,x\n2,,y\n" * 9, {}),
    "marks of no value": (rows("NA", "N/A", "n/a", "NaN", "nan"), {}),
    "other marks of no value": (rows("null", "NULL", "None", "?", "-", "--", "na", "<NA>", "#N/A"), {}),
    "marks of no value in quotes": (rows('"NA"', '"null"'), {}),
    "leading zeros": (column("007", "010", "000"), {}),
    "a plus sign": (column("+5", "+0.5", "5"), {}),
    "numbers with exponents": (column("1e5", "1E+05", "2.5e-3", "1e05"), {}),
    "numbers without digits before or behind the point": (column(".5", "5.", "-.5", "-0.0"), {}),
    "hexadecimal numbers": (column("0x10", "0xFF"), {}),
    "underscores in numbers": (column("1_000", "2_000"), {}),
    "thousands in quotes": (column('"1,000"', '"2,500.50"'), {}),
    "infinite numbers": (column("inf", "-inf", "Infinity", "1"), {}),
    "numbers beyond int64": (column(2**63, -(2**63) - 1, 10**30), {}),
    "the limits of int64": (column(2**63 - 1, -(2**63)), {}),
    "numbers beyond float64": (column("1e400", "1e-400", "1"), {}),
    "many digits": (column("0.1234567890123456789", "3." + "1" * 300), {}),
    "spaces around numbers": (column(" 1", "2 ", " 3 "), {}),
    "true and false": (column("true", "False", "TRUE"), {}),
    "a column of a few words and numbers": (column("1", "x", "2.5", ""), {}),
    "amounts of money": (column('"$1,200.50"', "€3", "(5.00)"), {}),
    "dates": (column("2024-01-31", "31.01.2024", "1/31/24 10:00 PM"), {}),
    "JSON in a cell": (rows('"{""a"": [1, 2]}"'), {}),
    "HTML in a cell": (rows('"<a href=""x"">y, z</a>"'), {}),
    "formulas": (rows("=1+1", "@x", "+x", "-x"), {}),
    "backslashes": (rows("a\\b", "\\", "\\n", "\\N"), {}),
    "a hash": (rows("#1", "#"), {}),
    "a percent sign": (rows("5 %", "%s"), {}),
    "emoji": (rows("😀", "👩‍👩‍👧", "🇳🇴"), {}),
    "scripts from right to left": (rows("שלום", "مرحبا"), {}),
    "letters with combining marks": (rows("e\u0301", "é"), {}),
    "Chinese": (rows("数据", "北京"), {}),
    "a character beyond 16 bits": (rows("𝒳", "\U0010ffff"), {}),
    "long cells": (rows("x" * 131_072, "é" * 100_000), {}),
    "one row": ("n,t\n1,a\n", {}),
    "one column": ("t\n" + "a\nb\n" * 20, {}),
    "one cell": ("t\na\n", {}),
    "many columns": (",".join(f"c{place}" for place in range(1_000)) + "\n" + ",".join("1" * 1_000) + "\n", {}),
    "a long header": (",".join(["c" * 10_000, "t"]) + "\n1,a\n", {}),
    "names that are words of Python": ("class,def,None,import\n1,2,a,b\n", {}),
    "names with dots, slashes and brackets": ("a.b,c/d,e[0],f(g),h:i\n1,2,a,b,c\n", {}),
    "names with quotes in them": ('"a ""b""",c\'d\n1,2\n', {}),
    "names in quotes": ('"n","t"\n1,a\n', {}),
    "names with spaces inside": ("first name,last name\na,b\n", {}),
    "names that are numbers": ("1,2.5,-3\na,b,c\n", {}),
    "names that differ in case": ("n,N\n1,2\n", {}),
    "names with emoji": ("😀,é\n1,2\n", {}),
    "gzip": ("n,t\n" + ROWS, {"compression": "gzip"}),
    "gzip of two parts": ("n,t\n" + ROWS, {"compression": "gzip", "parts": 2}),
    "bzip2": ("n,t\n" + ROWS, {"compression": "bz2"}),
}  # fmt: skip

# These cells differ from pandas' on purpose; docs/columns.md says why.
DIFFERENT = {
    "a name left out": (",t\n0,a\n1,b\n", ["unnamed", "t"], ["Unnamed: 0", "t"]),
    "spaces around names": (" n , t\n1,a\n", ["n", "t"], [" n ", " t"]),
}


def write(folder, content, options):
    """Writes a file; returns its path and what pandas needs to read it."""
    data = content if isinstance(content, bytes) else content.encode()
    options = {"encoding": "utf-8", "sep": ",", "quotechar": '"', "compression": None, **options}
    name = "data.csv"
    if options["compression"]:
        pack = {"gzip": gzip.compress, "bz2": bz2.compress}[options["compression"]]
        name += {"gzip": ".gz", "bz2": ".bz2"}[options["compression"]]
        middle = len(data) // 2 if options.pop("parts", 1) == 2 else 0
        data = (pack(data[:middle]) if middle else b"") + pack(data[middle:])
    (folder / name).write_bytes(data)
    return folder / name, options


@pytest.mark.parametrize("kind", LEGAL)
def test_the_cells_of_a_legal_file_are_those_of_pandas(tmp_path, read_as_a_run, kind):
    path, options = write(tmp_path, *LEGAL[kind])
    expected = pd.read_csv(path, dtype=str, keep_default_na=False, na_filter=False, **options)
    settings = {}
    if "is configured" in kind:
        settings = {"delimiter": options["sep"], "encoding": options["encoding"]}
    found = read_as_a_run(path, label=None, **settings)
    assert found.cells == {name: expected[name].tolist() for name in expected.columns}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_names_that_pandas_reads_in_another_way(tmp_path, read_as_a_run, kind):
    content, ours, theirs = DIFFERENT[kind]
    path, _ = write(tmp_path, content, {})
    expected = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert (list(read_as_a_run(path, label=None).cells), list(expected)) == (ours, theirs)


NUMBERS = [kind for kind, (text, _) in LEGAL.items() if isinstance(text, str) and text.startswith("t,n\n")]


@pytest.mark.parametrize("kind", NUMBERS)
def test_the_numbers_of_a_legal_file_are_those_of_pandas(tmp_path, read_as_a_run, kind):
    path, _ = write(tmp_path, LEGAL[kind][0], {})
    expected = pd.read_csv(path)["n"]
    found = read_as_a_run(path, label=None)
    if expected.dtype == np.int64:
        assert found.values["n"] == expected.tolist()
    elif kind == "numbers beyond float64":  # pandas leaves them as text
        assert found.values["n"] == [np.inf, 0.0, 1.0]
    elif expected.dtype == np.float64:
        np.testing.assert_array_equal(np.float32(found.values["n"]), expected.to_numpy().astype(np.float32))
    elif kind in ("numbers beyond int64", "a column of a few words and numbers"):
        assert found.values["n"] == [str(cell).encode() or None for cell in _texts(path)]
    else:  # a boolean is text in a tf.Example
        assert found.values["n"] == [cell.encode() for cell in _texts(path)]


def _texts(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)["n"].tolist()


def test_two_files_with_other_ends_of_lines_are_one_table(tmp_path, read_as_a_run):
    (tmp_path / "a.csv").write_bytes(b"n,t\r\n1,a\r\n2,b\r\n")
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfn,t\n3,c")
    found = read_as_a_run(tmp_path, label=None)
    parts = [pd.read_csv(tmp_path / name, dtype=str) for name in ("a.csv", "b.csv")]
    assert found.cells == pd.concat(parts).to_dict("list")
