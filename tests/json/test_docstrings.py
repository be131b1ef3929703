"""Every public name of `onecopy.json` has a docstring, and the examples in it run."""

from __future__ import annotations

import doctest
import inspect
import types

import pytest

import onecopy
import onecopy.compat.orjson
import onecopy.compat.ujson
import onecopy.json

MODULES = [onecopy.json, onecopy.compat, onecopy.compat.orjson, onecopy.compat.ujson]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_of_a_module_run(module: types.ModuleType) -> None:
    failed, _ = doctest.testmod(module, extraglobs={"onecopy": onecopy})
    assert failed == 0


def _public() -> list[tuple[str, object, types.ModuleType]]:
    return [
        (f"{module.__name__}.{name}", getattr(module, name), module)
        for module in MODULES
        for name in getattr(module, "__all__", ())
        if (not name.startswith("OPT_") and name != "JSONEncodeError") or module is onecopy.json
    ]


@pytest.mark.parametrize(("name", "member", "module"), _public(), ids=[name for name, _, _ in _public()])
def test_a_public_name_is_documented_and_its_examples_run(name: str, member: object, module: types.ModuleType) -> None:
    text = inspect.getdoc(member)
    assert text, f"`{name}` has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {**vars(module), "onecopy": onecopy}, name, None, None)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0
