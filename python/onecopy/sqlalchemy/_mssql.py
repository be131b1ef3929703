"""The SQLAlchemy dialect `mssql+onecopy`."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects.mssql.base import MSDialect, MSExecutionContext

from onecopy.sqlalchemy._common import OnecopyContext, OnecopyDialect, _version


class _Context(OnecopyContext, MSExecutionContext):
    pass


class MSDialectOnecopy(OnecopyDialect, MSDialect):
    """The dialect for SQL Server, through Microsoft's drivers or FreeTDS."""

    supports_statement_cache = True
    execution_ctx_cls = _Context
    # `sp_executesql` runs each statement in a separate scope, which ends with the statement. The
    # identity is therefore selected in the same statement as the INSERT.
    scope_identity_must_be_embedded = True
    supports_sane_rowcount_returning = True
    supports_native_uuid = True

    def _get_server_version_info(self, connection: Any) -> Any:
        return _version(
            connection.exec_driver_sql("select cast(serverproperty('productversion') as varchar(40))").scalar()
        )
