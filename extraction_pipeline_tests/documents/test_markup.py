import pytest

from extraction_pipeline.documents.reading import DocumentKind, UnreadableReason
from extraction_pipeline_tests.documents.made_files import pdf_of_pages, read, reason, refused


def html(body: str) -> str:
    return read(f"<html><body>{body}</body></html>".encode(), "a.html").text


def test_html_keeps_headings_paragraphs_lists_and_tables_in_order():
    text = read(
        b"""<!DOCTYPE html><html><head><title>Policy 12</title><style>p { color: red }</style>
        <script>alert(1)</script></head><body><h1>Oxygen</h1><p>Covered <b>at home</b>
        when:</p><ul><li>SpO2 below 88 %</li><li>on exertion<ul><li>or asleep</li></ul></li></ul>
        <ol><li>Test</li><li>Order</li></ol>
        <table><tr><th>Code</th><th>Meaning</th></tr><tr><td>E1390</td><td>Concentrator</td></tr>
        </table><p>Line one<br>line two</p></body></html>""",
        "policy.html",
    ).text
    assert text == (
        "Policy 12\n\nOxygen\n\nCovered at home when:\n\n- SpO2 below 88 %\n- on exertion\n"
        "  - or asleep\n\n1. Test\n2. Order\n\nCode | Meaning\nE1390 | Concentrator\n\n"
        "Line one\nline two"
    )


def test_html_is_known_by_content_and_not_only_by_name():
    assert read(b"\n<!doctype HTML><p>Fever</p>", "scan.pdf").kind is DocumentKind.HTML
    assert read(b"<div>Fever</div>", "export").kind is DocumentKind.HTML


def test_markdown_that_begins_with_a_tag_keeps_its_lines():
    result = read(b"<div align=center>\n\n# Plan\n- a\n- b\n", "a.md")
    assert result.kind is DocumentKind.MARKDOWN
    assert "# Plan\n- a\n- b" in result.text


def test_a_power_of_ten_is_not_run_together():
    assert html("4.0 x 10<sup>9</sup>/L, m<sup>2</sup>, H<sub>2</sub>O") == "4.0 x 10^9/L, m2, H2O"


def test_struck_out_text_is_marked():
    assert html("<s>warfarin 5 mg</s> apixaban 5 mg") == "~~warfarin 5 mg~~ apixaban 5 mg"


def test_cells_that_span_rows_are_repeated_and_those_that_span_columns_keep_the_columns_apart():
    table = (
        "<table><tr><td rowspan=2>Codeine</td><td>RxNorm</td></tr><tr><td>NDF-RT</td></tr>"
        "<tr><td colspan=2>none</td><td>end</td></tr></table>"
    )
    assert html(table) == "Codeine | RxNorm\nCodeine | NDF-RT\nnone |  | end"


def test_a_long_cell_that_spans_rows_is_not_repeated():
    long = "Instructions. " * 40
    table = f"<table><tr><td rowspan=2>{long}</td><td>a</td></tr><tr><td>b</td></tr></table>"
    assert html(table) == f"{long.strip()} | a\n | b"


def test_a_table_within_a_cell_is_written_in_lines_of_its_own():
    table = "<table><tr><td>Left<table><tr><td>a</td><td>b</td></tr></table></td><td>R</td></tr>"
    assert html(table) == "Left\na | b\n | R"


def test_preformatted_text_keeps_its_lines():
    assert html("<pre>Na   140\nK    4.1</pre>") == "Na   140\nK    4.1"


def test_filled_fields_of_a_saved_page_are_text():
    form = (
        "Name <input value='A. B.'> <input type=checkbox checked> yes <input type=hidden value=x>"
    )
    assert html(form) == "Name A. B. [x] yes"


def test_the_encoding_that_a_page_declares_counts_where_it_is_not_utf_8():
    page = "<html><head><meta charset='iso-8859-2'></head><body>Łódź, gorączka</body></html>"
    assert read(page.encode("iso-8859-2"), "a.html").text == "Łódź, gorączka"
    assert read(page.encode("utf-8"), "a.html").text == "Łódź, gorączka"


def test_a_page_of_nothing_but_pictures_has_no_text():
    assert (
        reason(b"<html><body><img src=a.png></body></html>", "a.html") is UnreadableReason.NO_TEXT
    )


def test_html_nested_beyond_what_the_parser_takes_is_refused_whole():
    page = b"<html><body>first" + b"<div>" * 5000 + b"deep" + b"</div>" * 5000 + b"last</body>"
    assert reason(page, "a.html") is UnreadableReason.TRUNCATED_OR_CORRUPT
    page = b"<html><body>first" + b"<div>" * 500 + b"deep" + b"</div>" * 500 + b"last</body>"
    assert read(page, "a.html").text.split() == ["first", "deep", "last"]


def test_generic_xml_gives_its_text_and_the_attributes_that_are_text():
    text = read(
        b"""<?xml version="1.0"?><Guide id="77"><Section SecID="1" Name="General">
        <Field FieldID="2" Name="Title"><Value Value="&lt;p&gt;Sepsis &lt;b&gt;bundle&lt;/b&gt;"/>
        </Field><note author="seen by two people">Give fluids.</note> Then reassess.
        <status value="active"/></Section></Guide>""",
        "guide.xml",
    ).text
    assert [line for line in text.splitlines() if line] == [
        "General",
        "Title",
        "Sepsis bundle",
        "seen by two people",
        "Give fluids.",
        "Then reassess.",
        "status: active",
    ]


@pytest.mark.parametrize("name", ["a.xml", "a.ccda", "a.txt"])
def test_xml_that_is_cut_short_is_refused(name):
    whole = b"<?xml version='1.0'?><a><b>Fever</b><b>Chills</b></a>"
    assert "Chills" in read(whole, name).text
    assert reason(whole[:-9], name) is UnreadableReason.TRUNCATED_OR_CORRUPT


def test_a_note_that_begins_with_an_angle_bracket_is_a_note():
    assert read(b"<name removed> was seen today.", "a.txt").kind is DocumentKind.TEXT


def test_xml_with_a_wrong_encoding_declared():
    data = "<?xml version='1.0' encoding='utf-8'?><a>Café</a>".encode("cp1252")
    assert read(data, "a.xml").text == "Café"
    data = "<?xml version='1.0' encoding='utf-16'?><a>Café</a>".encode("utf-16")
    assert read(data, "a.xml").text == "Café"


def test_entities_are_neither_expanded_nor_fetched(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("classified")
    bomb = b'<!DOCTYPE a [<!ENTITY b "xxxxxxxxxx"><!ENTITY c "&b;&b;&b;&b;">]><a>&c;</a>'
    outside = f'<!DOCTYPE a [<!ENTITY b SYSTEM "{secret.as_uri()}">]><a>&b;</a>'.encode()
    for content in (bomb, outside):
        result = refused(b"<?xml version='1.0'?>" + content, "a.xml")
        assert result.reason is UnreadableReason.UNSUPPORTED_KIND
        assert "classified" not in result.detail


def test_xml_nested_too_deeply():
    data = b"<?xml version='1.0'?>" + b"<a>" * 5000 + b"x" + b"</a>" * 5000
    assert reason(data, "a.xml") is UnreadableReason.TOO_LARGE


def test_a_picture_named_as_something_else_is_named_in_the_reason():
    result = refused(b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "note.txt")
    assert result.reason is UnreadableReason.UNSUPPORTED_KIND
    assert "PNG" in result.detail


def test_a_pdf_is_known_by_content_and_not_only_by_name():
    assert read(pdf_of_pages(["Fever."]), "note.txt").kind is DocumentKind.PDF
