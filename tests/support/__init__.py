"""What every test, bench and soak run stands on.

``servers``   starts and stops the databases on loopback, each on a port of its own
``packages``  what the machine must have for them, and the line that installs it
``drivers``   where each ODBC driver's shared object is
``table``     the eight-column table ``t``, the same values in every database
``load``      puts ``t`` into a database
``tds``       a small TDS 7.4 responder: SQL Server's protocol without SQL Server
``skips``     ``need``: one place that decides between a skip and a failure
"""
