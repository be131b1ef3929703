"""SQLAlchemy 2 dialects for onecopy, which SQLAlchemy finds through entry points.

    create_engine("sqlite+onecopy:///cities.db")
    create_engine("postgresql+onecopy://user:password@host/database")
    create_engine("mysql+onecopy://…"), create_engine("mariadb+onecopy://…"), create_engine("mssql+onecopy://…")

These dialects derive from SQLAlchemy's own dialects for the databases (its public base classes),
with onecopy as the driver. In the URL's query, ``read_only``, ``autocommit``, ``connect_timeout``
and ``errors`` are options of `onecopy.connect`; others are passed to the ODBC driver.
``…+onecopy:///?odbc_connect=…`` accepts a whole connection string.

SQLAlchemy is not a dependency of onecopy; only this package imports it.
"""

from __future__ import annotations

from onecopy.sqlalchemy._mssql import MSDialectOnecopy
from onecopy.sqlalchemy._mysql import MariaDBDialectOnecopy, MySQLDialectOnecopy
from onecopy.sqlalchemy._postgresql import PGDialectOnecopy
from onecopy.sqlalchemy._sqlite import SQLiteDialectOnecopy

__all__ = [
    "MSDialectOnecopy",
    "MariaDBDialectOnecopy",
    "MySQLDialectOnecopy",
    "PGDialectOnecopy",
    "SQLiteDialectOnecopy",
]
