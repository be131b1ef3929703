"""Every public name of the package has a docstring, and the examples in it run."""

from __future__ import annotations

import doctest
import inspect
import types

import pytest

import onecopy
import onecopy._callproc
import onecopy._input_sizes
import onecopy._long_values
import onecopy.aio
import onecopy.aio._pool
import onecopy.compat.mssql_python
import onecopy.compat.mssql_python._connection
import onecopy.compat.pyodbc
import onecopy.compat.pyodbc._connect
import onecopy.dbapi
import onecopy.errors
import onecopy.json
import onecopy.pool
import onecopy.rows
import onecopy.text
import onecopy.web
import onecopy.web._head

CLASSES = [
    onecopy.Connection,
    onecopy.Cursor,
    onecopy.RowStream,
    onecopy.ArrowStream,
    onecopy.Column,
    onecopy.Ledger,
    onecopy.text.Decoder,
    onecopy.text.Encoder,
]


@pytest.mark.parametrize(
    "module",
    [
        onecopy,
        onecopy.aio,
        onecopy.aio._pool,
        onecopy.compat.mssql_python,
        onecopy.compat.mssql_python._connection,
        onecopy.compat.pyodbc,
        onecopy.compat.pyodbc._connect,
        onecopy.dbapi,
        onecopy.errors,
        onecopy.json,
        onecopy._long_values,
        onecopy.pool,
        onecopy._callproc,
        onecopy.rows,
        onecopy._input_sizes,
        onecopy.text,
        onecopy.web,
        onecopy.web._head,
    ],
    ids=lambda m: m.__name__,
)
def test_examples_of_a_module_run(module: types.ModuleType) -> None:
    failed, _ = doctest.testmod(module, extraglobs={"onecopy": onecopy})
    assert failed == 0


def documented() -> list[tuple[str, object]]:
    members = [
        (f"{c.__name__}.{n}", m)
        for c in CLASSES
        for n, m in vars(c).items()
        if not n.startswith("_") and n[0].islower()
    ]
    functions = [(f"text.{n}", getattr(onecopy.text, n)) for n in onecopy.text.__all__]
    functions += [(f"json.{n}", getattr(onecopy.json, n)) for n in onecopy.json.__all__]
    return [
        *((c.__name__, c) for c in CLASSES),
        *members,
        *functions,
        ("connect", onecopy.connect),
        ("ledger", onecopy.ledger),
    ]


@pytest.mark.parametrize(("name", "member"), documented(), ids=[n for n, _ in documented()])
def test_examples_of_the_extension_run(name: str, member: object) -> None:
    text = inspect.getdoc(member)
    assert text, f"`{name}` has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {**vars(onecopy.text), "onecopy": onecopy}, name, None, None)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0
