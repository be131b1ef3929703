"""Helpers that the tests, the benchmarks and the soak runs share.

``servers``   starts and stops the databases on loopback, each on its own port
``packages``  the Debian packages that they need, and the command that installs them
``drivers``   the path of each ODBC driver's shared object
``table``     the eight-column table ``t``, the same values in every database
``load``      loads ``t`` into a database
``tds``       a small TDS 7.4 responder: SQL Server's protocol without SQL Server
``skips``     ``need``: decides between a skip and a failure
"""
