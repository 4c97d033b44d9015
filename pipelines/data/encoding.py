"""The character encoding of CSV files, and UTF-8 copies of files in another encoding."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from components.example_gen.file_names import is_parquet, split_name
from pipelines.data.byte_checks import readable
from pipelines.data.opening import open_bytes
from pipelines.errors import BadInputError
from pipelines.terminal.ending import temporary_folder

_BLOCK_BYTES = 8 << 20
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAMPLE_LINES = 1_000
_LANGUAGES = {
    "cp932": "Japanese",
    "euc_jis_2004": "Japanese",
    "shift_jis_2004": "Japanese",
    "big5": "Chinese",
    "big5hkscs": "Chinese",
    "gb18030": "Chinese",
    "cp949": "Korean",
    "johab": "Korean",
}
"""Languages of encodings, which have several bytes for a character."""

UTF_8_NAMES = ("utf-8", "utf-8-sig", "ascii")
"""Encodings of files that are UTF-8 as they are."""


@dataclass(frozen=True)
class Utf8Files:
    files: list[Path]  # User's own files, or UTF-8 copies
    originals: list[Path]  # User's own files, in the same order
    encoding: str

    @property
    def are_copies(self) -> bool:
        """True if the files had to be copied."""
        return self.files != self.originals

    def with_original_paths(self, message: str) -> str:
        """Returns a message that names the user's files instead of the copies."""
        for copy, original in zip(self.files, self.originals, strict=True):
            message = message.replace(str(copy), str(original))
        return message


def as_utf8(files: Sequence[Path], encoding: str | None = None) -> Utf8Files:
    """Returns files whose text is UTF-8; others are copied until the process ends.

    `encoding`: encoding of all of them. Default: UTF-16 if a byte order mark says so; Windows-1252 if the
    bytes beyond ASCII are not UTF-8 at all; otherwise UTF-8.
    """
    originals = list(files)
    with readable(originals[0]):
        common_encoding = encoding or next(
            (name for name in map(detect_encoding, originals) if name != "utf-8"), "utf-8"
        )
        if common_encoding in UTF_8_NAMES or all(map(is_parquet, originals)):
            return Utf8Files(originals, originals, "utf-8")
        folder = temporary_folder("pipelines-utf8-")
        copies = []
        for index, file in enumerate(originals):
            folder_of_copy = folder / f"{index:05d}"
            folder_of_copy.mkdir()
            copies.append(folder_of_copy / f"{split_name(file.name)[0]}.csv")
            own = common_encoding if encoding else detect_encoding(file)
            _recode(file, copies[-1], own)
    return Utf8Files(copies, originals, common_encoding)


def detect_encoding(file: Path, max_blocks: int | None = None) -> str:
    """Returns `utf-8`, `utf-16` or `cp1252`.

    A UTF-8 file with a few broken bytes counts as UTF-8, so that the bytes are reported later.
    """
    if is_parquet(file):
        return "utf-8"
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    num_broken = num_other = 0
    with open_bytes(file) as stream:
        start = stream.peek(4)
        if start.startswith(_UTF_16_MARKS):
            return "utf-16"
        if start.startswith((b"\x1f\x8b", b"PK\x03\x04")):
            return "utf-8"  # no text at all, reported later
        for block in islice(iter(lambda: stream.read(_BLOCK_BYTES), b""), max_blocks):
            if b"\0" in block:
                return "utf-8"
            text = decoder.decode(block)
            if not text.isascii():
                broken = text.count("\ufffd")
                num_broken += broken
                num_other += sum(not char.isascii() for char in text) - broken
    return "cp1252" if num_broken and not num_other else "utf-8"


def describe_likely_encodings(file: Path) -> str:
    """Returns a sentence if a file is probably Japanese, Chinese or Korean and not UTF-8; empty otherwise."""
    import charset_normalizer

    with open_bytes(file) as stream:
        start = stream.read(_BLOCK_BYTES)
    lines = [line for line in start.splitlines(keepends=True) if not line.isascii()][:_SAMPLE_LINES]
    text = b"".join(lines).decode("utf-8", "replace")
    if 2 * text.count("\ufffd") <= sum(not char.isascii() for char in text):
        return ""  # UTF-8 with a few broken bytes
    matches = list(charset_normalizer.from_bytes(b"".join(lines)))
    if not matches or matches[0].encoding not in _LANGUAGES:
        return ""
    likely = [match.encoding for match in matches if match.encoding in _LANGUAGES and _is_asian(str(match))]
    names = " or ".join(f"{encoding} ({_LANGUAGES[encoding]})" for encoding in likely[:3])
    return f" It is probably {names}: give --set data.encoding={likely[0]}." if likely else ""


def _is_asian(text: str) -> bool:
    """Returns whether most letters beyond ASCII are ideographs, kana or Hangul of full width."""
    others = [char for char in text if not char.isascii()]
    return 2 * sum("\u3041" <= char <= "\ud7a3" for char in others) > len(others)


def _recode(source: Path, target: Path, encoding: str) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with open_bytes(source) as reader, target.open("w", encoding="utf-8", newline="") as writer:
        block = b"start"
        while block:
            block = reader.read(_BLOCK_BYTES)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                if isinstance(error, UnicodeDecodeError):  # count the lines before the broken bytes
                    valid = codecs.decode(error.object[: error.start], error.encoding, "replace")
                    line += valid.count("\n")
                advice = describe_likely_encodings(source) or (
                    " Save it in that encoding, or set data.encoding to the file's encoding."
                )
                raise BadInputError(
                    f"{source}, line {line}: the file is not {encoding} text: {error}.{advice}"
                ) from error
            line += text.count("\n")
            writer.write(text)
