"""Provisioning hooks for SQLAlchemy's test suite, which loads this module by its name.

Source: https://github.com/sqlalchemy/sqlalchemy/blob/main/README.dialects.rst
"""

from __future__ import annotations

from sqlalchemy.dialects.mssql import provision as _mssql
from sqlalchemy.dialects.mysql import provision as _mysql
from sqlalchemy.dialects.postgresql import provision as _postgresql
from sqlalchemy.dialects.sqlite import provision as _sqlite

__all__: list[str] = []

_HOOKS = (_mssql, _mysql, _postgresql, _sqlite)
