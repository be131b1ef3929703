"""The header fields of a response that is a row stream."""

from __future__ import annotations

import pytest

import onecopy
from onecopy.web._head import CONTENT_TYPES, disposition, fields


@pytest.fixture
def con() -> onecopy.Connection:
    return onecopy.connect("sqlite::memory:")


@pytest.mark.parametrize(
    ("format", "content_type"),
    [("json", "application/json"), ("ndjson", "application/x-ndjson"), ("csv", "text/csv; charset=utf-8")],
)
def test_each_format_has_its_content_type(con: onecopy.Connection, format: str, content_type: str) -> None:
    rows = getattr(con.execute("select 1 as id"), format)()
    assert rows.format == format
    assert fields(rows, None, None, (), 7) == [
        ("Content-Type", content_type),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Length", "7"),
    ]


def test_a_field_of_the_caller_replaces_the_default(con: onecopy.Connection) -> None:
    rows = con.execute("select 1 as id").json()
    made = fields(rows, "a.json", "application/geo+json", {"x-content-type-options": "none", "X-Own": "é"}, None)
    assert made == [
        ("Content-Type", "application/geo+json"),
        ("Content-Disposition", 'attachment; filename="a.json"'),
        ("x-content-type-options", "none"),
        ("X-Own", "é"),
    ]


def test_pairs_may_contain_a_name_twice(con: onecopy.Connection) -> None:
    rows = con.execute("select 1 as id").json()
    pairs = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    assert fields(rows, None, None, iter(pairs), None)[-2:] == pairs


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\0b"])
def test_a_field_with_a_line_end_is_refused(con: onecopy.Connection, value: str) -> None:
    rows = con.execute("select 1 as id").json()
    for headers in ([("X-A", value)], [(value, "a")]):
        with pytest.raises(ValueError, match="line end"):
            fields(rows, None, None, headers, None)
    with pytest.raises(ValueError, match="line end"):
        fields(rows, None, value, (), None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cities.csv", 'filename="cities.csv"'),
        ("two words.csv", 'filename="two words.csv"'),
        ("Städte.csv", "filename=\"St_dte.csv\"; filename*=UTF-8''St%C3%A4dte.csv"),
        ("東京.json", "filename=\"__.json\"; filename*=UTF-8''%E6%9D%B1%E4%BA%AC.json"),
        # Characters that could end the string, the line or the folder are in neither of them.
        ('a"b\\c/d\r\n.csv', 'filename="a_b_c_d__.csv"'),
        ("50%41.csv", "filename=\"50_41.csv\"; filename*=UTF-8''50%2541.csv"),
        ("it's (1)*.csv", 'filename="it\'s (1)*.csv"'),
        ("é's (1)*.csv", "filename=\"_'s (1)*.csv\"; filename*=UTF-8''%C3%A9%27s%20%281%29%2A.csv"),
        ("\udc80.csv", "filename=\"_.csv\"; filename*=UTF-8''%3F.csv"),
    ],
)
def test_a_file_name_in_any_script_has_both_forms(name: str, value: str) -> None:
    assert disposition(name) == f"attachment; {value}"
    assert disposition(name).isascii() and disposition(name).isprintable()


def test_every_format_of_a_cursor_is_known(con: onecopy.Connection) -> None:
    given = {name for name in CONTENT_TYPES if hasattr(onecopy.Cursor, name)}
    for name in given:
        assert getattr(con.execute("select 1 as id"), name)().format == name
    assert given >= {"json", "ndjson", "csv"}
