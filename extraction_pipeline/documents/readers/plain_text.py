"""From bytes to text when nothing but the bytes is known: byte order marks, UTF-8, UTF-16, others.

What is valid UTF-8 is UTF-8: a text of another encoding with accents in it is practically never
valid UTF-8 by chance. Windows-1252 stands for Latin-1 too, as in the HTML standard, because it
differs only where Latin-1 has control characters. Beyond these two, charset-normalizer decides
among the encodings that clinical systems write.
"""

import codecs
import logging
import re
from dataclasses import dataclass

from charset_normalizer import from_bytes

from extraction_pipeline.documents.readable import NotReadable, UnreadableReason
from extraction_pipeline.documents.readers.clean_text import looks_binary

# Its messages may quote the document.
logging.getLogger("charset_normalizer").propagate = False

_BYTE_ORDER_MARKS = (
    # UTF-32's little-endian mark begins with UTF-16's, so it is asked for first.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CANDIDATES = [
    *("cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257", "mac_roman", "cp850", "cp852"),
    *("cp1251", "koi8_r", "cp1253", "iso8859_7", "cp1255", "cp1256", "cp874", "cp1258"),
    *("gb18030", "big5", "cp932", "euc_jp", "cp949"),
]
_SAMPLE_BYTES = 64 * 1024
_WESTERN_SHARE = 0.25
"""Western text has at most this share of bytes beyond ASCII; Greek or Chinese text has more."""

_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_RARE_IN_WESTERN = re.compile("[\u0160\u0161\u017d\u017e\u00f0\u00d0\u00fe\u00de]")
"""Letters of Czech, Turkish in a wrong guess, and Icelandic: S and Z with caron, eth, thorn."""
_NEVER_IN_WESTERN = re.compile(
    # A low quote, a florin sign, a circumflex or a dagger right after a letter (old DOS text), ...
    "(?<=[a-z])[\u201a\u0192\u201e\u02c6\u2021]"
    # ... or a sign between two letters (Polish, old Mac text).
    "|(?<=[a-z])[\u2020\u2030\u02dc\u2122\u00a1-\u00ac\u00ae-\u00b4\u00b6\u00b8-\u00bf"
    "\u00d7\u00f7](?=[a-z])"
)


@dataclass(frozen=True)
class DecodedText:
    """A text and Python's name of the encoding it was in."""

    text: str
    encoding: str


def decode(content: bytes, *, declared: str | None = None) -> DecodedText:
    """The text of some bytes. Raises NotReadable for binary content and for a hopeless guess.

    `declared` is the encoding that the content itself names (XML, HTML, HL7 v2). It is believed
    only where the bytes are not valid UTF-8, because exports often declare what they are not.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            # A cut last character and stray bytes are replaced: the mark leaves no doubt.
            text = _without_cut_end(content[len(mark) :], encoding)
            return _unless_binary(DecodedText(text, encoding))
    if b"\0" in content:
        wide = _utf16_without_mark(content)
        if wide is not None:
            return _unless_binary(wide)
    if b"\x1b$" in content:
        # ISO-2022-JP is 7-bit and would pass for ASCII.
        japanese = _strictly(content, "iso2022_jp")
        if japanese is not None:
            return japanese
    return _unless_binary(_utf8(content) or _declared(content, declared) or _detected(content))


def _utf8(content: bytes) -> DecodedText | None:
    try:
        return DecodedText(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        cut_at = error.start if error.reason == "unexpected end of data" else None
    if cut_at is not None:
        # The file ends inside a character, or in a single accented letter of another encoding.
        rest, tail = content[:cut_at], content[cut_at:]
        if len(tail) > 1 or not rest.isascii() or tail in b"\xc2\xc3\xe2\xf0":
            return DecodedText(rest.decode("utf-8"), "utf-8")
        return None
    # Two systems' texts in one file: mostly UTF-8, with single bytes of Windows-1252 between.
    damaged = content.decode("utf-8", "replace")
    replaced = damaged.count("\ufffd")
    beyond_ascii = len(content) - sum(map(len, re.findall(rb"[\x00-\x7f]+", content)))
    if beyond_ascii - replaced >= 4 * replaced:
        return DecodedText(content.decode("utf-8", "windows-1252-byte"), "utf-8")
    return None


def _windows_1252_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("windows-1252-byte", _windows_1252_byte)


def _without_cut_end(content: bytes, encoding: str) -> str:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return decoder.decode(content, final=False)


def _utf16_without_mark(content: bytes) -> DecodedText | None:
    """UTF-16 whose every second byte is mostly NUL, as for all text in a Latin script."""
    sample = content[:_SAMPLE_BYTES]
    half = len(sample) // 2
    if half == 0:
        return None
    nul_in_low, nul_in_high = sample[0::2].count(0), sample[1::2].count(0)
    if nul_in_high > 0.5 * half and nul_in_low < 0.05 * half:
        encoding = "utf-16-le"
    elif nul_in_low > 0.5 * half and nul_in_high < 0.05 * half:
        encoding = "utf-16-be"
    else:
        return None
    return DecodedText(_without_cut_end(content, encoding), encoding)


def _declared(content: bytes, declared: str | None) -> DecodedText | None:
    if declared is None:
        return None
    try:
        encoding = codecs.lookup(declared).name
    except LookupError:
        return None
    # Latin-1 takes any bytes, so its name says little; the general rule finds Windows-1252.
    return None if encoding in {"iso8859-1", "ascii"} else _strictly(content, encoding)


def _detected(content: bytes) -> DecodedText:
    runs = _HIGH_BYTES.findall(content)
    beyond_ascii = sum(map(len, runs))
    # Chinese and Cyrillic come in runs of bytes beyond ASCII, accents one at a time.
    accents = beyond_ascii <= _WESTERN_SHARE * len(content) and beyond_ascii < 1.5 * len(runs)
    western = _strictly(content, "cp1252") if accents else None
    candidates = _CANDIDATES
    if western is not None:
        if _NEVER_IN_WESTERN.search(western.text) is not None:
            candidates = [name for name in _CANDIDATES if name != western.encoding]
        elif _RARE_IN_WESTERN.search(western.text) is None:
            return western
    _refuse_binary(content)
    # Only the lines that matter: a few foreign words drown in a long English text.
    telling = b"\n".join(line for line in content.splitlines() if not line.isascii())
    best = from_bytes(telling, cp_isolation=candidates).best()
    guess = _strictly(content, best.encoding) if best is not None else None
    if guess is not None:
        return guess
    if western is not None:
        return western
    if accents:
        return DecodedText(content.decode("latin-1"), "latin-1")
    raise NotReadable(
        UnreadableReason.UNDECODABLE, "no encoding fits the bytes; save the file as UTF-8"
    )


def _strictly(content: bytes, encoding: str) -> DecodedText | None:
    try:
        return DecodedText(content.decode(encoding), encoding)
    except (UnicodeError, LookupError):
        return None


def _unless_binary(decoded: DecodedText) -> DecodedText:
    if looks_binary(decoded.text[:_SAMPLE_BYTES]):
        raise _binary()
    return decoded


def _refuse_binary(content: bytes) -> None:
    if looks_binary(content[:_SAMPLE_BYTES].decode("latin-1")):
        raise _binary()


def _binary() -> NotReadable:
    return NotReadable(
        UnreadableReason.UNSUPPORTED_KIND, "binary content of a kind that no reader knows"
    )
