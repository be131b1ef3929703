"""Errors of `bson.encode`: each kind of bad input raises an error that has the path of the
field."""

from __future__ import annotations

import datetime as dt
import enum
import gc
import threading
import uuid
import weakref
from decimal import Decimal
from typing import Any

import pytest

from onecopy import bson

DEEP = 100_000


def _nested(n: int, is_list: bool) -> dict[str, Any]:
    value: Any = 1
    for _ in range(n):
        value = [value] if is_list else {"a": value}
    return {"a": value}


def _undo(value: Any) -> None:
    """Dismantles a deeply nested value iteratively.

    In older CPythons its deallocation would recurse once for each level.
    """
    while isinstance(value, (list, dict)) and value:
        value = value.pop() if isinstance(value, list) else value.popitem()[1]


class Strange:
    """A class without a BSON representation."""


FAR_EAST, FAR_WEST = (dt.timezone(dt.timedelta(hours=h)) for h in (14, -12))

REFUSED: list[tuple[Any, str, str]] = [
    (2**63, "int", "past 64 bits"),
    (-(2**63) - 1, "int", "past 64 bits"),
    (2**64, "int", "past 64 bits"),
    (10**400, "int", "past 64 bits"),
    ("a\ud800", "text", r"\\ud800 at character 1"),
    ("я" * 5000 + "\udfff", "text", r"\\udfff at character 5000"),
    ("\U0001f600\udc00", "text", r"\\udc00 at character 1"),
    ("\ud83d\ude00", "text", "character 0"),
    ({"a\0": 1}, "key", "a key contains NUL"),
    ({"я\0": 1}, "key", "a key contains NUL"),
    ({"x" * 99 + "\0": 1}, "key", "a key contains NUL"),
    ({"\udc00": 1}, "text", "lone surrogate"),
    (dt.datetime(9999, 12, 31, 23, tzinfo=FAR_WEST), "datetime", "years 1 to 9999"),
    (dt.datetime(1, 1, 1, tzinfo=FAR_EAST), "datetime", "years 1 to 9999"),
    (Decimal("1" * 35), "decimal", "34 digits"),
    (Decimal("1E+7000"), "decimal", "34 digits"),
    (Decimal("NaN5"), "decimal", "no form"),
]


@pytest.mark.parametrize(("value", "kind", "reason"), REFUSED, ids=lambda x: repr(x)[:30])
def test_a_value_that_has_no_form_is_an_error_that_names_its_path(value: Any, kind: str, reason: str) -> None:
    for doc, path in (
        ({"v": value}, "$.v"),
        ({"rows": [0, {"v": value}]}, "$.rows[1].v"),
        ({"rows": [{"v": 1}, {"v": [value]}]}, "$.rows[1].v[0]"),
    ):
        with pytest.raises(bson.BSONEncodeError, match=reason) as caught:
            bson.encode(doc)
        assert caught.value.kind == kind
        assert caught.value.path.startswith(path)
        assert f"at `{caught.value.path}`" in str(caught.value)
        for call in (
            lambda doc=doc: bson.encode_into(doc, bytearray(1 << 20)),
            lambda doc=doc: list(bson.encode_many([doc])),
        ):
            with pytest.raises(bson.BSONEncodeError, match=reason):
                call()


@pytest.mark.parametrize(
    "value", [object(), Strange(), {1, 2}, dt.time(1), iter([]), 1j, range(3), Exception], ids=repr
)
def test_a_type_that_has_no_form_is_a_type_error_with_its_path(value: Any) -> None:
    with pytest.raises(TypeError, match=r"has no form in BSON, at `\$\.a\[0\]`\nname a function") as caught:
        bson.encode({"a": [value]})
    assert isinstance(caught.value, bson.BSONTypeError)
    assert caught.value.path == "$.a[0]"


@pytest.mark.parametrize("key", [1, None, b"a", ("a",), 1.5])
def test_a_key_that_is_not_a_str_is_a_type_error_with_its_path(key: Any) -> None:
    with pytest.raises(TypeError, match=r"a key is of type .*, not `str`, at `\$\.a"):
        bson.encode({"a": {key: 1}})
    with pytest.raises(TypeError, match="a key is of type"):
        bson.encode({key: 1})


@pytest.mark.parametrize(
    "doc", [[], [{}], 1, None, "text", b"bytes", 1.5, dt.datetime(2020, 1, 1), uuid.uuid4()], ids=repr
)
def test_an_object_that_is_not_a_document_is_a_type_error(doc: Any) -> None:
    with pytest.raises(TypeError, match="a document is a mapping"):
        bson.encode(doc)
    with pytest.raises(TypeError):
        bson.encode(Strange(), default=lambda _: doc)
    scoped = bson.Code("f()", {})
    scoped.scope = doc
    if doc is not None:
        with pytest.raises(TypeError, match="a document is a mapping"):
            bson.encode({"c": scoped})


def test_keys_are_checked_by_option() -> None:
    for key in ("$a", "a.b", "я.", "$", "." * 80):
        for doc, path in (({key: 1}, "$"), ({"r": [{"a": 1}, {key: 1}]}, "$.r[1]")):
            bson.encode(doc)
            with pytest.raises(bson.BSONEncodeError, match="dollar or contains a dot") as caught:
                bson.encode(doc, check_keys=True)
            assert caught.value.path.startswith(path)
    assert bson.encode({"a$": 1}, check_keys=True) == bson.encode({"a$": 1})
    rows = {"r": [{"key": 1}] * 5}
    assert bson.encode(rows, check_keys=True) == bson.encode(rows)


@pytest.mark.parametrize("is_list", [True, False])
def test_a_hundred_thousand_levels_are_an_error_and_no_crash(is_list: bool) -> None:
    doc = _nested(DEEP, is_list)
    with pytest.raises(bson.BSONEncodeError, match=r"more than 1000 objects[^\n]*…[^\n]*\n.*max_depth") as caught:
        bson.encode(doc)
    assert caught.value.kind == "depth"
    data = bson.encode(doc, max_depth=2 * DEEP)
    with pytest.raises(bson.BSONEncodeError):
        bson.encode(doc, max_depth=DEEP)
    assert bson.encode(doc, max_depth=DEEP + 1) == data
    _undo(doc)


def test_a_value_that_contains_itself_is_an_error() -> None:
    doc: dict[str, Any] = {"a": []}
    doc["a"].append(doc)
    with pytest.raises(bson.BSONEncodeError, match="contains itself"):
        bson.encode(doc)
    items: list[Any] = []
    items.append(items)
    with pytest.raises(bson.BSONEncodeError, match="contains itself"):
        bson.encode({"a": items})
    with pytest.raises(bson.BSONEncodeError, match=r"contains itself|more than"):
        bson.encode({"a": Strange()}, default=lambda value: value)
    with pytest.raises(bson.BSONEncodeError, match=r"contains itself|more than"):
        bson.encode({"a": Strange()}, default=lambda value: [value])
    doc.clear()
    items.clear()


def test_a_document_that_is_too_long_is_an_error() -> None:
    for value in ("x" * 1000, "я" * 600, b"x" * 1000, [1] * 300, {"a" * 1000: 1}, bytearray(1000)):
        size = len(bson.encode({"v": value}))
        assert len(bson.encode({"v": value}, max_bytes=size)) == size
        for call in (
            lambda value=value, size=size: bson.encode({"v": value}, max_bytes=size - 1),
            lambda value=value: bson.encode({"v": value}, max_bytes=20),
            lambda value=value, size=size: list(bson.encode_many([{}, {"v": value}], max_bytes=size - 1)),
        ):
            with pytest.raises(bson.BSONEncodeError, match="longer than") as caught:
                call()
            assert caught.value.kind == "size"
    with pytest.raises(ValueError, match="at most 2147483647"):
        bson.encode({}, max_bytes=2**31)


def test_lone_surrogates_are_replaced_by_option() -> None:
    for text in ("a\ud800b", "я\udc00" * 3000, "\U0001f600\ud800", "東" * 9000 + "\udfff"):
        replaced = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
        assert bson.encode({text: text}, errors="replace") == bson.encode({replaced: replaced})


def test_datetimes_out_of_range_are_clamped_or_kept_by_option() -> None:
    late, early = dt.datetime(9999, 12, 31, 23, tzinfo=FAR_WEST), dt.datetime(1, 1, 1, tzinfo=FAR_EAST)
    last = int(bson.DatetimeMS(dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)))
    for moment, clamped in ((late, last), (early, int(bson.DatetimeMS(dt.datetime(1, 1, 1))))):
        assert bson.encode({"t": moment}, datetime_range="clamp") == bson.encode({"t": bson.DatetimeMS(clamped)})
    raw = last - 59 * 60_000 - 59_999 + 12 * 3_600_000
    assert bson.encode({"t": late}, datetime_range="raw") == bson.encode({"t": bson.DatetimeMS(raw)})


def test_a_uuid_has_no_form_without_a_representation() -> None:
    with pytest.raises(bson.BSONEncodeError, match=r"unspecified, at `\$\.u`") as caught:
        bson.encode({"u": uuid.uuid4()}, uuid_representation="unspecified")
    assert caught.value.kind == "uuid"


@pytest.mark.parametrize("raw", [b"", b"\5\0\0\0", b"\6\0\0\0\0", b"\5\0\0\0\1", b"\xff\xff\xff\xff\0", b"\4\0\0\0"])
def test_a_raw_document_with_a_wrong_length_is_refused(raw: bytes) -> None:
    class Document:
        _type_marker = 101

        def __init__(self) -> None:
            self.raw = raw

    for doc in (Document(), {"v": Document()}):
        with pytest.raises(bson.BSONEncodeError, match="raw document"):
            bson.encode(doc)


class Choice(enum.Enum):
    ONE = 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enum", Choice.ONE),
        ("decimal", Decimal(1)),
        ("date", dt.date(2020, 1, 1)),
        ("buffer", bytearray(b"x")),
        ("buffer", memoryview(b"x")),
    ],
)
def test_values_with_passthrough_are_passed_to_default(name: Any, value: Any) -> None:
    assert bson.encode({"v": value}, passthrough=(name,), default=lambda v: repr(v)) == bson.encode({"v": repr(value)})
    with pytest.raises(TypeError, match="has no form"):
        bson.encode({"v": value}, passthrough=(name,))


def test_unknown_keywords_are_refused() -> None:
    for wrong, error in (
        ({"default": 5}, TypeError),
        ({"uuid_representation": "x"}, ValueError),
        ({"errors": "backslashreplace"}, ValueError),
        ({"datetime_range": "x"}, ValueError),
        ({"passthrough": "enum"}, TypeError),
        ({"passthrough": ("x",)}, ValueError),
        ({"max_depth": -1}, OverflowError),
        ({"other": 1}, TypeError),
    ):
        with pytest.raises(error):
            bson.encode({}, **wrong)


def test_default_is_called_for_an_int_past_64_bits_and_for_a_document() -> None:
    assert bson.encode({"v": 2**70}, default=str) == bson.encode({"v": str(2**70)})
    assert bson.encode(Strange(), default=lambda _: {"a": 1}) == bson.encode({"a": 1})
    assert bson.encode({"v": Strange()}, default=lambda _: 2**40) == bson.encode({"v": 2**40})


def test_an_exception_of_default_is_raised_unchanged() -> None:
    class Mine(Exception):
        pass

    def fail(value: object) -> None:
        raise Mine

    with pytest.raises(Mine):
        bson.encode({"a": [Strange()]}, default=fail)
    assert not gc.garbage


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("where", ["dict", "list", "outer", "keys"])
def test_a_document_that_changes_while_it_is_encoded_is_an_error_or_has_old_and_new_values(where: str, n: int) -> None:
    inner: dict[str, Any] = {f"k{i}": Strange() for i in range(n)}
    items: list[Any] = [inner, *[Strange() for _ in range(n)]]
    doc: dict[str, Any] = {"items": items, "more": Strange(), "last": "x"}
    made = "y" * 300
    old = {f"k{i}": made for i in range(n)}
    new = {f"k{i}" * 20: [str(i)] for i in range(n)}

    def change(value: object) -> str:
        if where == "dict":
            inner.clear()
        elif where == "list":
            items.clear()
        elif where == "outer":
            doc.clear()
        else:
            inner.clear()
            inner.update(new)
        gc.collect()
        return made

    if where in ("dict", "outer"):
        with pytest.raises(RuntimeError, match="the dict was changed while it was written"):
            bson.encode(doc, default=change)
        return
    got = bson.decode(bson.encode(doc, default=change))
    assert (list(got), got["more"], got["last"]) == (["items", "more", "last"], made, "x")
    if where == "list":
        assert got["items"] == [old]
    else:
        assert got["items"][1:] == [made] * n
        assert got["items"][0]["k0"] == made
        assert all(value == {**old, **new}[key] for key, value in got["items"][0].items())


def test_results_of_default_are_not_kept() -> None:
    class Kept(dict[str, Any]):
        pass

    made: list[weakref.ref[Kept]] = []

    def give(value: object) -> Kept:
        kept = Kept(a=[1, "x" * 100])
        made.append(weakref.ref(kept))
        return kept

    bson.encode({"v": [Strange() for _ in range(20)]}, default=give)
    gc.collect()
    assert len(made) == 20
    assert all(ref() is None for ref in made)


def test_threads_encode_concurrently() -> None:
    doc = {"rows": [{"id": i, "name": "東京" * 10, "more": [i, {"x": Strange()}]} for i in range(200)]}
    expected = bson.encode(doc, default=lambda _: "s")
    wrong = []

    def run() -> None:
        for _ in range(30):
            if bson.encode(doc, default=lambda _: "s") != expected:
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
