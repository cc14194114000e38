import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extraction_pipeline.documents.readable import NotReadable
from extraction_pipeline.documents.readers.clean_text import clean_text
from extraction_pipeline.documents.readers.plain_text import decode
from extraction_pipeline.documents.reading import DocumentKind, UnreadableReason
from extraction_pipeline_tests.documents.made_files import read, reason

FRENCH = "Sortie à domicile après évolution favorable, contrôle prévu à l'hôpital en août."
GERMAN = "Übelkeit rückläufig. Nächste Kontrolle beim Hausarzt, Blutdruck 120/80 mmHg."
SPANISH = "Varón de 36 años que acudió por disminución de la agudeza visual. ¿Alergias? No."
ENGLISH = "The patient\u2019s course was \u201cuneventful\u201d \u2013 temperature 38.5 \u00b0C."
POLISH = (
    "Pacjent został przyjęty z powodu bólu brzucha, gorączki i nudności. Rozpoznanie: zapalenie "
    "wyrostka robaczkowego. Leczenie operacyjne bez powikłań; zdjęcie szwów za tydzień."
)
RUSSIAN = "Пациент поступил с жалобами на боли в животе, выписан в хорошем состоянии."  # noqa: RUF001
CHINESE = "出院记录:患者因腹痛入院,诊断为急性阑尾炎,行腹腔镜手术,术后恢复良好,准予出院。"
JAPANESE = "患者は腹痛のため入院し、急性虫垂炎と診断されました。経過良好で退院となりました。"
KOREAN = "환자는 복통으로 입원하여 급성 충수염으로 진단받고 수술 후 호전되어 퇴원하였다."


@pytest.mark.parametrize("text", [FRENCH, GERMAN, SPANISH, ENGLISH, RUSSIAN, CHINESE])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_encodings(text, encoding):
    assert read(text.encode(encoding), "a.txt").text == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(encoding):
    result = read((ENGLISH * 3).encode(encoding), "a.txt")
    assert (result.text, result.encoding) == (ENGLISH * 3, encoding)


@pytest.mark.parametrize(
    ("text", "written_as", "recognized_as"),
    [
        (FRENCH, "latin-1", "cp1252"),
        (GERMAN, "latin-1", "cp1252"),
        (SPANISH, "cp1252", "cp1252"),
        (ENGLISH, "cp1252", "cp1252"),
        (FRENCH, "mac_roman", "mac_roman"),
        (FRENCH, "cp850", "cp850"),
        (POLISH, "cp1250", "cp1250"),
        (POLISH, "iso8859_2", "iso8859_2"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8_r", "koi8_r"),
        (CHINESE, "gb18030", "gb18030"),
        (JAPANESE, "shift_jis", "cp932"),
        (JAPANESE, "iso2022_jp", "iso2022_jp"),
        (KOREAN, "cp949", "cp949"),
    ],
)
def test_older_encodings(text, written_as, recognized_as):
    result = read(text.encode(written_as), "a.txt")
    assert (result.text, result.encoding) == (text, recognized_as)


def test_a_few_chinese_words_in_an_english_text():
    # Bytes that Windows-1252 has letters for, too few to count in the text as a whole.
    words = "患者入院治疗后好转,主治医师签字"
    words.encode("gb18030").decode("cp1252")
    text = "Discharge summary. Stable.\n" * 100 + words + "\nReviewed by phone."
    result = read(text.encode("gb18030"), "a.txt")
    assert (result.text, result.encoding) == (text, "gb18030")


def test_a_single_accent_at_the_end_is_an_accent_and_not_a_cut_character():
    assert decode("Le patient est sorti en bonne santé".encode("cp1252")).text.endswith("santé")


@given(st.text(st.characters(min_codepoint=0xA0, exclude_categories=["Cs"]), min_size=1))
def test_a_file_cut_inside_a_character_loses_only_that_character(text):
    whole = "Caf\u00e9: " + text
    data = whole.encode("utf-8")
    cut = data[:-1]
    decoded = decode(cut)
    assert decoded.text == whole[:-1]
    assert decoded.encoding == "utf-8"


def test_a_stray_byte_in_a_utf_8_file_is_read_as_windows_1252():
    data = (FRENCH * 3).encode() + b" Dosis 5 \xb5g."
    assert decode(data).text == FRENCH * 3 + " Dosis 5 \u00b5g."


def test_nul_bytes_and_mixed_line_ends():
    assert read(b"a\0b\r\nc\rd\ne\x0cf", "a.txt").text == "ab\nc\nd\ne\nf"


@pytest.mark.parametrize(
    "content", [b" \r\n\t ", b"\xef\xbb\xbf", b"\0\0", "\u200b\u2003".encode()]
)
def test_blank_files(content):
    assert reason(content, "a.txt") is UnreadableReason.BLANK


def test_an_empty_file():
    assert reason(b"", "a.txt") is UnreadableReason.EMPTY


def test_binary_content_is_refused_and_not_guessed_at():
    assert reason(bytes(range(256)) * 8, "a.txt") is UnreadableReason.UNSUPPORTED_KIND


def test_bytes_beyond_every_encoding_are_undecodable():
    # All of 0x80 to 0xFF in random order: no script looks like this.
    data = bytes((i * 73) % 128 + 128 for i in range(4000))
    with pytest.raises(NotReadable) as caught:
        decode(data)
    assert caught.value.reason is UnreadableReason.UNDECODABLE


def test_kind_by_name_where_the_content_leaves_it_open():
    assert read(b"# Plan\n- rest", "a.md").kind is DocumentKind.MARKDOWN
    assert read(b"# Plan\n- rest", "a.txt").kind is DocumentKind.TEXT


any_text = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None))


@given(any_text)
@example("\ud83d\ude00 \ud83d \ude00")
@example("a\ufffeb\uffffc\ufeffd\ufdd0")
@example("a\u2028b\u2029c\x85d\x1ce\x0bf")
def test_clean_text_can_be_stored_sent_and_split_into_lines(text):
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert json.loads(json.dumps(cleaned)) == cleaned
    assert "\0" not in cleaned
    assert cleaned.splitlines() == cleaned.removesuffix("\n").split("\n") if cleaned else True
    assert clean_text(cleaned) == cleaned
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in cleaned)


def test_a_surrogate_pair_becomes_its_character_and_a_lone_one_the_replacement():
    assert clean_text("\ud83d\ude00, \ud83d") == "\U0001f600, \ufffd"


def test_characters_are_not_normalized():
    text = "5 \u2126, 3 \u212b, e\u0301 and \u00e9, 10\u2079/L, \U0001d465, \u00a0"
    assert read(text.encode(), "a.txt").text == text
