"""The JSON functions of each library in their fastest configuration, and their arguments.

Encoders return compact UTF-8 without escapes of non-ASCII characters. ssrjson is configured to
leave no cached UTF-8 in strings, as onecopy does.
"""

from __future__ import annotations

import datetime
import decimal
import importlib
import json
from collections.abc import Callable
from typing import Any

import fastsimdjson
import msgspec
import orjson
import ssrjson
import ujson

from benches.codec_race import plain
from benches.corpora import arrays, documents, natives, values

Call = Callable[[Any], Any]

ssrjson.write_utf8_cache(False)
ssrjson.suppress_api_warning()

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode

ENCODE: dict[str, Call] = {
    "orjson": orjson.dumps,
    "ssrjson": ssrjson.dumps_to_bytes,
    "fastsimdjson": fastsimdjson.dumpb,
    "msgspec": msgspec.json.Encoder().encode,
    "ujson": lambda o: ujson.dumps(o, ensure_ascii=False, escape_forward_slashes=False).encode(),
    "json": lambda o: _compact(o).encode(),
}
ENCODE_STR: dict[str, Call] = {
    "orjson": lambda o: orjson.dumps(o).decode(),
    "ssrjson": ssrjson.dumps,
    "fastsimdjson": lambda o: fastsimdjson.dumpb(o).decode(),
    "msgspec": lambda o: msgspec.json.encode(o).decode(),
    "ujson": lambda o: ujson.dumps(o, ensure_ascii=False, escape_forward_slashes=False),
    "json": _compact,
}
DECODE: dict[str, Call] = {
    "orjson": orjson.loads,
    "ssrjson": ssrjson.loads,
    "fastsimdjson": fastsimdjson.loads,
    "msgspec": msgspec.json.Decoder().decode,
    "ujson": ujson.loads,
    "json": json.loads,
}
ENCODE_KEYS: dict[str, Call] = {"orjson": lambda o: orjson.dumps(o, option=orjson.OPT_NON_STR_KEYS)}
ENCODE_SORTED: dict[str, Call] = {
    "orjson": lambda o: orjson.dumps(o, option=orjson.OPT_SORT_KEYS),
    "msgspec": msgspec.json.Encoder(order="deterministic").encode,
}


def _value_of(thing: natives.Thing) -> Any:
    """The value of an object that no encoder supports: the function `default` of each library."""
    return thing.value


ENCODE_DEFAULT: dict[str, Call] = {
    "orjson": lambda o: orjson.dumps(o, default=_value_of),
    "msgspec": msgspec.json.Encoder(enc_hook=_value_of).encode,
}
ENCODE_NUMPY: dict[str, Call] = {"orjson": lambda o: orjson.dumps(o, option=orjson.OPT_SERIALIZE_NUMPY)}
PEERS = {
    "encode": ENCODE,
    "encode_numpy": ENCODE_NUMPY,
    "encode_keys": ENCODE_KEYS,
    "encode_sorted": ENCODE_SORTED,
    "encode_default": ENCODE_DEFAULT,
    "encode_rows": ENCODE,
    "encode_str": ENCODE_STR,
    "decode": DECODE,
    "decode_str": DECODE,
}
#: The peer that is the base of ratios.
BASE = "orjson"


def ours(way: str) -> Call | None:
    """onecopy's function for the operation `way`; None if it does not exist."""
    try:
        module = importlib.import_module("onecopy.json")
    except ImportError:
        return None
    if way == "encode_rows":
        dumps_rows = getattr(module, "dumps_rows", None)
        return dumps_rows and (lambda rows: dumps_rows(values.COLUMNS, rows))
    options: dict[str, dict[str, Any]] = {
        "encode_keys": {"non_str_keys": True},
        "encode_sorted": {"sort_keys": True},
        "encode_default": {"default": _value_of},
    }
    if way in options:
        return lambda o: module.dumps(o, **options[way])
    name = {
        "encode": "dumps",
        "encode_numpy": "dumps",
        "encode_str": "dumps_str",
        "decode": "loads",
        "decode_str": "loads",
        "iter_chunks": "iter_chunks",
    }[way]
    return getattr(module, name, None)


def _as_instants(value: Any) -> Any:
    """Converts texts of datetimes to datetimes, so that `Z` and `+00:00` are equal."""
    if isinstance(value, list):
        return [_as_instants(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_instants(item) for key, item in value.items()}
    try:
        return datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value


#: The comparisons of answers with several valid forms, by a row's `compare`.
_COMPARED: dict[str, Callable[[Any], str]] = {
    "instants": lambda answer: repr(_as_instants(json.loads(answer))),
    "numbers": lambda answer: repr([decimal.Decimal(str(n)).normalize() for n in json.loads(answer, parse_float=str)]),
}


def plain_of(compare: str) -> Callable[[Any], str]:
    """The function that converts results to a comparable text; `compare` is the row's kind of
    comparison."""
    return _COMPARED.get(compare, plain)


def given(corpus: str, way: str) -> tuple[Any, Any]:
    """The arguments of the peers' functions, and those of onecopy's."""
    documented = {
        "twitter": (documents.search_results, 2),
        "citm": (documents.catalogue, 4),
        "github": (documents.feed, 2),
    }
    if corpus in documented:
        make, by = documented[corpus]
        made = make()
        if way.startswith("encode"):
            return made, made
        return (documents.indented(made, by),) * 2  # As such files are stored.
    corpora = arrays if way == "encode_numpy" else values if hasattr(values, corpus) else natives
    made = getattr(corpora, corpus)()
    if way == "encode_rows":
        return [dict(zip(values.COLUMNS, row)) for row in made], made
    if way.startswith("encode"):
        return made, made
    data = ENCODE["json"](made)
    return (data.decode() if way == "decode_str" else data,) * 2
