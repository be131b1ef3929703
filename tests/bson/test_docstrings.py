"""Every public name of `onecopy.bson` has a docstring whose examples run, and is in the
documentation."""

from __future__ import annotations

import doctest
import inspect

import pytest

import onecopy.bson

_NAMES = onecopy.bson.__all__


def test_examples_of_the_module_run() -> None:
    assert doctest.testmod(onecopy.bson, extraglobs={"onecopy": onecopy})[0] == 0


@pytest.mark.parametrize("name", _NAMES)
def test_a_public_name_is_documented_and_its_examples_run(name: str) -> None:
    text = inspect.getdoc(getattr(onecopy.bson, name))
    assert text, f"`{name}` has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {"onecopy": onecopy}, name, None, None)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0
