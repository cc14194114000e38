"""The least that must be done to a text so that it can be stored, sent and quoted from.

A model's evidence is searched for in this text, and a reviewer searches for it in the source, so
the text keeps the source's characters. There is no Unicode normalization: NFC would turn the ohm
and the ångström sign into other letters and would hide whether "é" was one code point or two in
the source. Whoever compares texts folds both sides.

Done are only:
- NUL and the other control characters, and the code points that are no characters (U+FFFE,
  U+FFFF, U+FDD0 to U+FDEF and a byte order mark inside the text), are removed: PostgreSQL refuses
  NUL, and some JSON and XML readers the others.
- Every kind of line end becomes one line feed (CR LF, CR, vertical tab, form feed, the separators
  U+001C to U+001E, U+0085, U+2028, U+2029), so that no reader of lines, ours or a provider's,
  finds more lines than another.
- A surrogate pair becomes the character it stands for, a lone surrogate the replacement character
  U+FFFD: neither can be written as UTF-8.
"""

import re

_NEEDS_CLEANING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufeff\ufffe\uffff]")
_HARMLESS_CONTROLS = 8
_BINARY_SHARE = 0.05
"""Random bytes have a share of 0.11."""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def clean_text(text: str) -> str:
    """The text with line feeds only, well-formed, and without control characters."""
    if _NEEDS_CLEANING.search(text) is None:
        return text
    if _SURROGATE.search(text) is not None:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _NOT_TEXT.sub("", _LINE_END.sub("\n", text))


def looks_binary(text: str) -> bool:
    """Whether so many characters are controls which text does not use that it is no text.

    A file of nothing but NUL bytes is not binary but blank: a disk that was full leaves such.
    """
    controls = len(_CONTROL.findall(text))
    few = controls <= _HARMLESS_CONTROLS or controls <= _BINARY_SHARE * len(text)
    return not few and bool(text.strip("\0 \t\r\n"))
