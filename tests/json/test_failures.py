"""Failures of the JSON encoder: depth, cycles, hooks that raise or change the value, threads."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from onecopy import json

DEEP = 100_000


def _nested(n: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(n):
        value = wrap(value)
    return value


def _undo(value: Any) -> None:
    """Dismantles a deeply nested value iteratively.

    In older CPythons its deallocation would recurse once for each level.
    """
    while isinstance(value, (list, dict)) and value:
        value = value.pop() if isinstance(value, list) else value.popitem()[1]


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: (v,)], ids=["list", "dict", "tuple"])
def test_a_hundred_thousand_levels_are_an_error_when_encoded_and_no_crash(wrap: Callable[[Any], Any]) -> None:
    value = _nested(DEEP, wrap)
    for call in (json.dumps, json.dumps_str):
        with pytest.raises(json.JSONEncodeError, match="max_depth"):
            call(value)
    with pytest.raises(json.JSONEncodeError):
        json.dumps(value, indent=2)
    _undo(value)


def test_a_hundred_thousand_levels_can_be_allowed_for_both_directions() -> None:
    for opened, closed, wrap in ((b"[", b"]", lambda v: [v]), (b'{"a":', b"}", lambda v: {"a": v})):
        value = _nested(DEEP, wrap)
        data = json.dumps(value, max_depth=2 * DEEP)
        assert data == opened * DEEP + b"1" + closed * DEEP
        _undo(value)
        back = json.loads(data, max_depth=2 * DEEP)
        assert json.dumps(back, max_depth=2 * DEEP) == data
        _undo(back)


@pytest.mark.parametrize(
    "text", [b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP, b'[{"a":' * DEEP, b"[[],[" * DEEP]
)
def test_a_hundred_thousand_levels_are_an_error_when_decoded_and_no_crash(text: bytes) -> None:
    for given in (text, text.decode()):
        with pytest.raises(json.JSONDecodeError, match="max_depth"):
            json.loads(given)
    if not text.endswith(b"]"):
        with pytest.raises(json.JSONDecodeError, match="end of the text"):
            json.loads(text, max_depth=3 * DEEP)


def test_the_default_depth_is_a_thousand_for_both_directions() -> None:
    data = b"[" * 1000 + b"1" + b"]" * 1000
    assert json.dumps(json.loads(data)) == data
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(b"[" + data + b"]")
    assert caught.value.offset_bytes == 1000
    with pytest.raises(json.JSONEncodeError):
        json.dumps([json.loads(data)])
    deep: list[list[Any]] = [[[[1]]], [[[]]], [[{}]], [({},)]]
    for value in deep:
        text = json.dumps(value, max_depth=3)
        assert json.loads(text, max_depth=3) == json.loads(text)
        for indent in (None, 1):
            with pytest.raises(json.JSONEncodeError):
                json.dumps(value, max_depth=2, indent=indent)
        with pytest.raises(json.JSONDecodeError):
            json.loads(text, max_depth=2)


def test_the_recursion_limit_of_the_interpreter_is_not_used() -> None:
    limit = sys.getrecursionlimit()
    value = _nested(900, lambda v: [v])
    try:
        sys.setrecursionlimit(len(_frames()) + 60)
        assert len(json.dumps(value)) == 1801
        json.loads(b"[" * 900 + b"]" * 900)
    finally:
        sys.setrecursionlimit(limit)


def _frames() -> list[Any]:
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def test_a_value_that_contains_itself_is_an_error() -> None:
    own_list: list[Any] = []
    own_list.append(own_list)
    own_dict: dict[str, Any] = {}
    own_dict["a"] = [1, own_dict]
    for value in (own_list, own_dict, [own_dict], (own_list,)):
        for options in ({}, {"indent": 1}, {"sort_keys": True}):
            with pytest.raises(json.JSONEncodeError):
                json.dumps(value, **options)
    own_list.clear()
    own_dict.clear()


def test_the_same_value_twice_is_not_a_cycle() -> None:
    once = [1]
    assert json.dumps([once, once, {"a": once}]) == b'[[1],[1],{"a":[1]}]'


class Strange:
    """A class without a JSON representation."""


def test_an_exception_of_default_is_raised_unchanged() -> None:
    def default(value: Any) -> Any:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        json.dumps([1, {"a": Strange()}], default=default)


def test_default_that_returns_its_argument_is_an_error_and_no_crash() -> None:
    with pytest.raises((json.JSONEncodeError, RecursionError, TypeError)):
        json.dumps(Strange(), default=lambda value: value)
    with pytest.raises((json.JSONEncodeError, RecursionError, TypeError)):
        json.dumps(Strange(), default=lambda value: [value])
    with pytest.raises((json.JSONEncodeError, RecursionError, TypeError)):
        json.dumps(Strange(), default=lambda value: Strange())


def test_default_may_call_the_encoder() -> None:
    assert (
        json.dumps([Strange()], default=lambda value: json.loads(json.dumps({"a": [1, "я"]})))
        == '[{"a":[1,"я"]}]'.encode()
    )


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"indent": 1}], ids=["plain", "sorted", "indented"])
@pytest.mark.parametrize("n", [20, 50])
def test_a_dict_whose_size_changes_while_it_is_encoded_is_an_error_unless_it_was_copied(options: Any, n: int) -> None:
    def growing(value: Any) -> Any:
        for k in range(1000):
            changed[f"new {k}"] = k
        return 0

    def emptied(value: Any) -> Any:
        changed.clear()
        gc.collect()
        return "x" * 100

    for default, made in ((growing, 0), (emptied, "x" * 100)):
        changed: dict[str, Any] = {f"k{k}": Strange() if k % 3 == 1 else f"text {k}" * 5 for k in range(n)}
        expected = {f"k{k}": made if k % 3 == 1 else f"text {k}" * 5 for k in range(n)}
        if options.get("sort_keys") and n > 32:
            # The members were copied before the hook was called first. A shorter dict is sorted in
            # place.
            assert json.loads(json.dumps({"a": changed}, default=default, **options)) == {"a": expected}
        else:
            with pytest.raises(RuntimeError, match="the dict was changed while it was written"):
                json.dumps({"a": changed}, default=default, **options)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_sorted_dict_whose_keys_change_is_an_error(indent: Any) -> None:
    def default(value: Any) -> Any:
        del changed["c"]
        changed["a"] = 2
        return 0

    changed: dict[str, Any] = {"b": Strange(), "c": 1}
    with pytest.raises(RuntimeError, match="the dict was changed while it was written"):
        json.dumps([changed], default=default, sort_keys=True, indent=indent)


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"indent": 1}], ids=["plain", "sorted", "indented"])
def test_a_dict_whose_values_change_while_it_is_encoded_gives_each_key_its_old_or_new_value(options: Any) -> None:
    new = [Strange.__name__] * 3

    def replaced(value: Any) -> Any:
        for key in list(changed):
            changed[key] = new
        gc.collect()
        return 1

    changed: dict[str, Any] = {f"k{k}": Strange() if k % 3 == 1 else f"text {k}" * 5 for k in range(20)}
    old = {f"k{k}": 1 if k % 3 == 1 else f"text {k}" * 5 for k in range(20)}
    got = json.loads(json.dumps({"a": changed}, default=replaced, **options))["a"]
    assert set(got) == set(old)
    assert (got["k0"], got["k1"]) == (old["k0"], old["k1"])
    assert all(value in (old[key], new) for key, value in got.items())


def test_a_list_that_is_changed_while_it_is_encoded_is_written_as_an_iterator_would_see_it() -> None:
    def shorter(value: Any) -> Any:
        del changed[3:]
        gc.collect()
        return ["x" * 50] * 5

    def longer(value: Any) -> Any:
        if len(changed) < 5000:
            changed.extend(["more"] * 1000)
        return 1

    def other(value: Any) -> Any:
        changed[:] = ["y" * 60 for _ in changed]
        gc.collect()
        return None

    a, b, d, y = "a" * 60, "b" * 60, "d" * 60, "y" * 60
    first = [a, 1, b, 1, {"c": 1}, d]
    for default, expected in (
        (shorter, [[a, ["x" * 50] * 5, b]] * 2),
        # Each pass calls `default` for three values, until there are 5,000.
        (longer, [first + ["more"] * 3000, first + ["more"] * 5000]),
        (other, [[a, None, y, y, y, y], [y] * 6]),
    ):
        changed: list[Any] = [a, Strange(), b, Strange(), {"c": Strange()}, d]
        assert json.loads(json.dumps([changed, changed], default=default)) == expected


@pytest.mark.parametrize("kind", [list, type("Items", (list,), {})], ids=["list", "subclass"])
@pytest.mark.parametrize("n_left", [0, 1])
def test_a_list_that_a_write_to_the_file_shortens_is_an_error_or_text(kind: type[list[Any]], n_left: int) -> None:
    class File:
        def __init__(self) -> None:
            self.text = b""

        def write(self, data: bytes) -> None:
            self.text += data
            del changed[n_left:]

    # The write comes before each step around the list, in turn.
    for n in range((1 << 16) - 40, (1 << 16) + 4):
        changed, file = kind([1, 2, 3]), File()
        with contextlib.suppress(RuntimeError, json.JSONEncodeError):
            json.dump(["x" * n, 0, changed, [changed], "y" * 100], file)
            assert json.loads(file.text)[0] == "x" * n


def test_an_iterable_that_raises_releases_its_objects() -> None:
    def rows() -> Any:
        yield {"a": 1}
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        json.dumps_lines(rows())
    with pytest.raises(LookupError, match="mine"):
        b"".join(json.iter_chunks(rows()))
    with pytest.raises(LookupError, match="mine"):
        json.dumps_rows(["a"], ((1,) if k < 3 else _raise() for k in range(5)))


def _raise() -> Any:
    raise LookupError("mine")


def test_rows_of_another_length_than_the_header_are_refused() -> None:
    for rows in ([(1,)], [(1, 2, 3)], [(1, 2), ()]):
        with pytest.raises((ValueError, TypeError)):
            json.dumps_rows(["a", "b"], rows)


def test_no_value_is_kept_alive_after_an_error() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda value: json.dumps({"a": [value]}),
        lambda value: json.dumps([value], default=_raise_with),
        lambda value: json.dumps_rows(["a"], [(value,)]),
        lambda value: json.dumps_lines([value]),
    ]
    for call in calls:
        value = Strange()
        alive = weakref.ref(value)
        with pytest.raises((TypeError, LookupError)):
            call(value)
        del value
        gc.collect()
        assert alive() is None


def _raise_with(value: Any) -> Any:
    raise LookupError("mine")


def test_many_threads_encode_and_decode_the_same_values() -> None:
    values: list[Any] = [{"id": k, "имя": f"я{k}", "x": [k / 7, None, True]} for k in range(300)]
    wanted, failures = json.dumps(values), []

    def work() -> None:
        try:
            for _ in range(20):
                assert json.dumps(values) == wanted
                assert json.loads(wanted) == values
                assert b"".join(json.iter_chunks(iter(values), chunk_bytes=500)) == wanted
        except BaseException as error:  # Raised again by the thread that joins this one.
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_values_changed_by_another_thread_give_an_error_or_text_of_old_and_new_values() -> None:
    shared: list[Any] = [{"k": "v" * 40}] * 50
    mapping: dict[str, Any] = {f"k{k}": k for k in range(50)}
    over = threading.Event()

    def change() -> None:
        k = 0
        while not over.is_set():
            k += 1
            shared.append(["x" * (k % 90)])
            del shared[k % 40 : k % 40 + 2]
            mapping[f"n{k % 97}"] = k
            mapping.pop(f"k{k % 60}", None)

    errors: set[str] = set()
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            try:
                text = json.dumps([shared, mapping], default=str)
            except RuntimeError as error:
                errors.add(str(error).partition(", at ")[0])
                continue
            items, members = json.loads(text)
            assert all(item == {"k": "v" * 40} or set(item[0]) <= {"x"} for item in items)
            assert all(key[0] in "kn" and isinstance(value, int) for key, value in members.items())
    finally:
        over.set()
        thread.join()
    assert errors <= {f"the {kind} was changed while it was written" for kind in ("dict", "array")}
    assert json.loads(json.dumps([shared, mapping])) == [shared, mapping]
