"""`onecopy.json.loads` compared with the standard library: values, options, positions of errors."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import math
import pickle
import random
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import onecopy
from onecopy.json import JSONDecodeError, load, loads

ALPHABET = ["a", "b", " ", "é", "ÿ", "Ж", "東", "😀", '"', "\\", "/", "\n", "\t", "\x01", "\x7f", "\u2028", "\uffff"]
LENGTHS = [0, 1, 2, 3, 8, 13, 40, 63, 64, 65, 127, 128, 129, 200, 201, 300, 600]


def a_string(rng: random.Random) -> str:
    letters = rng.sample(ALPHABET, rng.randrange(1, 5)) if rng.random() < 0.5 else ALPHABET
    length = rng.choice(LENGTHS) if rng.random() < 0.98 else rng.randrange(8000, 40000)
    return "".join(rng.choices(letters, k=length))


def a_value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(10 if depth else 7)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        edges = [0, -1, 256, 257, 2**30, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**63) - 1, 10**18, 10**19]
        return rng.choice([*edges, rng.getrandbits(200), -rng.getrandbits(62), rng.randrange(-300, 300)])
    if kind == 2:
        floats = [0.0, -0.0, 0.1, 1e22, 1e23, 5e-324, sys.float_info.max, sys.float_info.min, 9007199254740993.0]
        return rng.choice([*floats, rng.random(), rng.random() * 10.0 ** rng.randrange(-300, 300)])
    if kind <= 6:
        return a_string(rng)
    if kind <= 8:
        return [a_value(rng, depth - 1) for _ in range(rng.choice([0, 1, 2, 5, 20]))]
    return {a_string(rng)[: rng.choice([3, 100])]: a_value(rng, depth - 1) for _ in range(rng.choice([0, 1, 5, 20]))}


def as_made(value: Any) -> object:
    """A value with the details that `==` ignores, for a comparison.

    The details are types, signs of zeros, the order of keys, and the storage of a `str`.
    """
    if isinstance(value, list):
        return [as_made(item) for item in value]
    if isinstance(value, dict):
        return [(as_made(key), as_made(item)) for key, item in value.items()]
    if isinstance(value, str):
        return (value, hash(value), value.isascii(), sys.getsizeof(value))
    return (type(value), repr(value))


@pytest.mark.parametrize("seed", range(8))
def test_values_are_those_of_the_standard_library(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        value = a_value(rng, 4)
        for options in ({}, {"ensure_ascii": False}, {"indent": rng.choice([1, 4, 30]), "ensure_ascii": False}):
            text = json.dumps(value, **options)
            data = text.encode()
            for given in (data, bytearray(data), memoryview(data), text):
                assert as_made(loads(given)) == as_made(value)


@pytest.mark.parametrize("length", LENGTHS)
def test_texts_of_each_kind_are_read_from_each_input(length: int) -> None:
    for wide in ("", "é", "Ж", "東", "😀"):
        for letter in ("x", "é", "Ж", "東", "😀", "\\n", "\\u00e9", "\\ud83d\\ude00"):
            document = f'{{"{letter * length}": ["{letter * length}", "{wide}"]}}'
            expected = json.loads(document)
            for given in (document, document.encode()):
                assert as_made(loads(given)) == as_made(expected)


def test_decoding_leaves_no_utf8_cache_on_a_str() -> None:
    for letter in ("é", "Ж", "東", "😀"):
        text = json.dumps([letter * 1000], ensure_ascii=False)
        before = sys.getsizeof(text)
        loads(text)
        assert sys.getsizeof(text) == before


WRONG = [
    "", " ", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', "{a:1}",
    "{1:1}",
    '{"a" 1}', '{"a":1 "b":2}', "tru", "nul", "True", "none", "01", "-01", "-", "+1", "1.", ".5", "1.e3", "1e",
    "1e+", "0x1",
    "1_000", "NaN", "Infinity", "-Infinity", "-NaN", "1e400", "-1e400", '"', '"\\"', '"\\x"', '"\\u12"',
    '"\\u12g4"', "'a'",
    '"a\nb"', '"\t"', '"\x00"', '"\\ud800"', '"\\udc00\\ud800"', "1 2", "[]]", "// c\n1", "/**/1", "1\x00",
    "\ufeff1", "\xa01",
    "[1]\xa0", '{"a":1}}', '["a",', '"abc', "[true,fals]",
]  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_invalid_json_is_refused_in_each_kind_of_input(text: str) -> None:
    places = set()
    for given in (text, text.encode(), bytearray(text.encode()), memoryview(text.encode())):
        with pytest.raises(JSONDecodeError) as caught:
            loads(given)
        error = caught.value
        assert isinstance(error, json.JSONDecodeError)
        assert isinstance(error, ValueError)
        places.add(error.pos)
        before = text[: error.pos]
        assert error.lineno == before.count("\n") + 1
        assert error.colno == error.pos - before.rfind("\n")
        assert error.offset_bytes == len(before.encode())
    assert len(places) == 1
    # The same in wide units, with the same position after the wide character.
    for letter in ("é", "東", "😀"):
        with pytest.raises(JSONDecodeError) as caught:
            loads(f'["{letter}" {text}')
        assert caught.value.pos >= 4


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b'"\xff"', 1),
        (b'["ab", "\xc0\x80"]', 8),
        (b'"\xed\xa0\x80"', 1),
        (b'"\xf4\x90\x80\x80"', 1),
        (b'"\xe6\x9d"', 1),
        (b'"abc\\n\xe6\x9d"', 6),
        (b'"' + b"a" * 300 + b'\x80"', 301),
        (b'"' + "東".encode() * 300 + b'\x80"', 901),
        (b'"\\n' + b"a" * 20000 + b'\xc3"', 20003),
        (b'"\\n' + b"a" * 50000 + b'\xc3"', 50003),
        (b'{"\xc3": 1}', 2),
        (b'{"\\n\xc3": 1}', 4),
    ],
)
def test_malformed_utf8_is_refused_with_its_byte(data: bytes, at: int) -> None:
    for errors in ("strict", "replace", "surrogatepass"):
        with pytest.raises(JSONDecodeError, match="malformed") as caught:
            loads(data, errors=errors)
        assert caught.value.offset_bytes == at
        assert caught.value.pos == len(data[:at].decode())


def test_an_error_has_its_text_and_can_be_pickled() -> None:
    with pytest.raises(JSONDecodeError) as caught:
        loads('{"é": 1,\n "東": x}'.encode())
    error = caught.value
    assert str(error) == "a value was expected: line 2 column 7 (char 15)"
    assert (error.pos, error.lineno, error.colno, error.offset_bytes) == (15, 2, 7, 18)
    assert error.doc == '{"é": 1,\n "東": x}'
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.doc, again.offset_bytes) == (str(error), error.doc, 18)


def test_depth_is_limited_and_never_crashes() -> None:
    for n in (1, 63, 64, 65, 1000):
        for unit, end in (("[", "]"), ('{"k":', "}")):
            text = unit * n + "1" + end * n
            assert loads(text, max_depth=n) is not None
            with pytest.raises(JSONDecodeError, match="max_depth"):
                loads(text, max_depth=n - 1)
    for unit, end in (("[", "]"), ('{"a":', "}"), ('[{"a":[],"b":', "}]")):
        deep = unit * 100_000 + "1" + end * 100_000
        with pytest.raises(JSONDecodeError, match="max_depth"):
            loads(deep)
        value = loads(deep, max_depth=10**6)
        assert len(value) >= 1
        del value
        with pytest.raises(JSONDecodeError, match="unexpected end"):
            loads(deep[:-1], max_depth=10**6)
        with pytest.raises(JSONDecodeError):
            loads(unit * 100_000, max_depth=10**6)


def test_long_lists_and_dicts_have_no_spare_capacity() -> None:
    for n in (2047, 2048, 2049, 4096, 100_003):
        items = list(range(n))
        made = loads(json.dumps(items))
        assert made == items
        assert sys.getsizeof(made) <= sys.getsizeof([None] * n)
        keys = {f"k{i}": i for i in range(n)}
        assert loads(json.dumps(keys)) == keys
        nested = {"a": items, "b": {"c": keys, "d": [keys, {"e": items}]}}
        assert loads(json.dumps(nested)) == nested


def test_objects_with_the_same_keys_in_any_order_and_number() -> None:
    rng = random.Random(5)
    names = [f"key_{i}" for i in range(40)]
    rows: list[dict[str, Any]] = [
        dict.fromkeys(rng.sample(names, rng.choice([1, 5, 8, 8, 8, 40])), i) for i in range(3000)
    ]
    rows += [{name: [i, {"x": i}] for name in names[:9]} for i in range(3000)]
    assert [list(row.items()) for row in loads(json.dumps(rows))] == [list(row.items()) for row in rows]


def test_keys_that_are_not_ascii_are_the_same_in_every_form_of_the_text() -> None:
    # The UTF-8 bytes of one key are the Latin-1 bytes of another: they are never confused, in any
    # order.
    keys = ["é", "Ã©", "имя", "Ð¸Ð¼Ñ\x8f", "東京", "😀", "ascii", "é" * 32, "é" * 33, "x" * 63 + "é"]
    for _ in range(3):
        for key in keys:
            text = json.dumps([{key: 1, "b": 2}, {key: 3, "b": 4}, {key: {key: 5}}], ensure_ascii=False)
            wanted = json.loads(text)
            assert loads(text.encode()) == wanted
            assert loads(text) == wanted
            assert list(loads(text.encode())[0]) == [key, "b"]


@pytest.mark.parametrize("key", [b"\xc3", b"\xc3\x28", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"])
def test_a_key_that_is_malformed_is_refused_each_time(key: bytes) -> None:
    for _ in range(3):
        with pytest.raises(JSONDecodeError) as caught:
            loads(b'{"a":1,"' + key + b'":2}')
        assert caught.value.offset_bytes == 8


def test_a_duplicate_key() -> None:
    text = '{"a": 1, "b": 2, "a": 3}'
    for times in range(4):
        document = "[" + ",".join([text] * (times + 1)) + "]"
        assert loads(document) == [{"a": 3, "b": 2}] * (times + 1)
        with pytest.raises(JSONDecodeError, match="duplicate key"):
            loads(document, duplicate_keys="error")
    many = {f"k{i}": i for i in range(5000)}
    twice = json.dumps(many)[:-1] + ', "k17": 1}'
    assert loads(twice)["k17"] == 1
    with pytest.raises(JSONDecodeError, match="duplicate key"):
        loads(twice, duplicate_keys="error")
    assert loads(json.dumps(many), duplicate_keys="error") == many


def test_big_ints() -> None:
    for number in (-(2**63) - 1, 2**64, 10**40, -(10**400)):
        text = f"[{number}]"
        assert loads(text) == [number]
        with pytest.raises(JSONDecodeError, match="64 bits"):
            loads(text, big_ints="error")
        if abs(number) < 10**300:
            assert loads(text, big_ints="float") == [float(number)]
    with pytest.raises(JSONDecodeError, match="too large"):
        loads("1" * 400, big_ints="float")
    for number in (2**63 - 1, -(2**63), 2**63, 2**64 - 1):
        assert loads(f"[{number}]", big_ints="error") == [number]
        assert loads(f"[{number}]", big_ints="float") == [number]


def test_lone_surrogates() -> None:
    for text, replaced in [
        (r'"a\ud800b"', "a\ufffdb"),
        (r'"\udc00\ud800"', "\ufffd\ufffd"),
        (r'"\ud800\n"', "\ufffd\n"),
    ]:
        expected = json.loads(text)
        for given in (text, text.encode(), text + "\n", f'"{expected}"' if "\n" not in expected else text):
            with pytest.raises(JSONDecodeError, match="surrogate"):
                loads(given)
            assert loads(given, errors="surrogatepass") == expected
            assert loads(given, errors="replace") == replaced
    for n in (20000, 40000):
        long = "x" * n + "\\ud800"
        assert loads(f'["{long}"]', errors="surrogatepass") == ["x" * n + "\ud800"]


def test_nan_and_infinities() -> None:
    value = loads("[NaN, Infinity, -Infinity]", nan="literal")
    assert math.isnan(value[0]) and value[1:] == [math.inf, -math.inf]
    for text in ("-NaN", "nan", "Infinit", "-Infinit", "NaNx"):
        with pytest.raises(JSONDecodeError):
            loads(text, nan="literal")


def test_hooks_are_called_and_may_do_anything() -> None:
    assert loads("[1.10, 2, 1e400]", parse_float=Decimal) == [Decimal("1.10"), 2, Decimal("1e400")]
    pairs = loads('{"a": {"b": 1}, "c": []}', object_hook=lambda d: sorted(d))
    assert pairs == ["a", "c"]

    def nested(d: dict[str, Any]) -> Any:
        gc.collect()
        return loads(json.dumps({"again": sorted(d)}))

    assert loads('[{"a": 1, "b": {"c": 2}}]', object_hook=nested) == [{"again": ["a", "b"]}]

    def failing(_: object) -> Any:
        raise KeyError("mine")

    hooks: list[dict[str, Callable[[Any], Any]]] = [{"object_hook": failing}, {"parse_float": failing}]
    for hook in hooks:
        with pytest.raises(KeyError, match="mine"):
            loads('[1, [2, {"a": {"b": 1.5}}]]', **hook)  # type: ignore[arg-type]
    assert gc.isenabled()


def test_wrong_arguments() -> None:
    for given in (None, 1, [1], {"a": 1}):
        with pytest.raises(TypeError, match="bytes-like"):
            loads(given)  # type: ignore[arg-type]
    for options in ({"big_ints": "no"}, {"nan": 1}, {"errors": "é"}, {"duplicate_keys": None}, {"max_depth": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            loads(b"1", **options)
    with pytest.raises(TypeError, match="callable"):
        loads(b"1", object_hook=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        loads(b"1", "exact")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected"):
        loads(b"1", float_hook=float)  # type: ignore[call-arg]


def test_a_strided_buffer_is_read_in_the_order_of_its_elements() -> None:
    assert loads(memoryview(b"[_1_,_2_]_")[::2]) == [1, 2]


def test_load_reads_bytes_and_text() -> None:
    assert load(io.BytesIO(b'{"a": "\xc3\xa9"}')) == {"a": "é"}
    assert load(io.StringIO('{"a": "é"}'), object_hook=list) == ["a"]
    with pytest.raises(JSONDecodeError):
        load(io.BytesIO(b"["))


def test_the_state_of_the_collector_is_restored() -> None:
    for text in ("[1, {}]", "[1, {]"):
        for enable in (gc.enable, gc.disable):
            enable()
            with contextlib.suppress(JSONDecodeError):
                loads(text)
            assert gc.isenabled() == (enable is gc.enable)
    gc.enable()


def test_containers_are_tracked_by_the_collector() -> None:
    for _ in range(3):  # the shape of an object is predicted from the previous one
        made = loads('[{"a": [], "b": 1}, {"a": 1, "b": {}}, {"a": "x", "b": 2}, []]')
        assert gc.is_tracked(made)
        assert [gc.is_tracked(item) for item in made[:2]] == [True, True]
        made[0]["a"].append(made)


def test_memory_is_released_after_errors() -> None:
    text = json.dumps([{"a": i, "b": str(i), "c": [i], "Ж": "東"} for i in range(200)])
    loads(text)
    gc.collect()
    before = sys.getrefcount(None)
    for end in range(1, len(text), 7):
        with pytest.raises(JSONDecodeError):
            loads(text[:end])
    assert abs(sys.getrefcount(None) - before) < 50


def test_the_ledger_counts_each_text_once() -> None:
    text = json.dumps(["x" * 1000, "é" * 1000, "a\n" * 5000], ensure_ascii=False).encode()
    with onecopy.ledger() as counted:
        loads(text)
    assert counted.converted + counted.copied <= len(text)
    assert counted.converted + counted.copied > len(text) * 0.9
