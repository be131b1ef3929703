"""Calls of the JSON encoder from its own callbacks end with RecursionError before the C stack is
full."""

import subprocess
import sys

import pytest

CODE = r"""
import dataclasses, sys, threading
import onecopy.bson, onecopy.json
from onecopy import bson, json

what, limit, stack_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.setrecursionlimit(limit)
deepest = depth = 0

def nested(call):
    global depth, deepest
    depth += 1
    deepest = max(deepest, depth)
    try:
        return call()
    finally:
        depth -= 1

class Other: pass

def json_default(other): return nested(lambda: json.dumps(other, default=json_default))
def bson_default(other): return nested(lambda: bson.encode({"a": other}, default=bson_default))
def hook(members): return nested(lambda: json.loads('{"a": 1}', object_hook=hook))

DOC = bson.encode({"a": {"b": 1}})

class Mapping(dict):
    def __setitem__(self, key, value): nested(lambda: bson.decode(DOC, document_class=Mapping))

@dataclasses.dataclass
class Point:
    x: int = 1
    def __getattribute__(self, name):
        return nested(lambda: json.dumps(Point())) if name == "x" else object.__getattribute__(self, name)

CALLS = {
    "json.dumps, default": lambda: json.dumps(Other(), default=json_default),
    "json.loads, object_hook": lambda: json.loads('{"a": 1}', object_hook=hook),
    "json.dumps, a field": lambda: json.dumps(Point()),
    "bson.encode, default": lambda: bson.encode({"a": Other()}, default=bson_default),
    "bson.decode, document_class": lambda: bson.decode(DOC, document_class=Mapping),
}

def run():
    try:
        CALLS[what]()
    except RecursionError:
        print("RecursionError", deepest)

if stack_bytes:
    threading.stack_size(stack_bytes)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
"""

CALLS = [
    "json.dumps, default",
    "json.loads, object_hook",
    "json.dumps, a field",
    "bson.encode, default",
    "bson.decode, document_class",
]


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("stack_bytes", [0, 1 << 20, 128 << 10])
@pytest.mark.parametrize("limit", [1000, 2000, 1_000_000])
def test_a_nested_call_is_refused_before_the_stack_is_full(what: str, limit: int, stack_bytes: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, what, str(limit), str(stack_bytes)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    name, depth = done.stdout.split()
    assert name == "RecursionError"
    # On a small stack some calls are possible too.
    assert int(depth) >= 5
