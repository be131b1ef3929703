"""A small TDS responder, 7.2 to 7.4: SQL Server's wire protocol, without SQL Server.

It is written from Microsoft's open specification [MS-TDS]. The three SQL Server drivers can log in,
run batches and prepared statements, call procedures and read rows; there is no SQL engine and no
TLS. ``queries`` lists the supported queries: the table ``t`` of any size, literals, casts to each
SQL Server type, echoed parameters, messages, tables in memory, transactions, and comments that make
a response fail.

``packets``     packets, framing with back-pressure, the cancel signal
``types``       SQL Server's types: their descriptions, and encoding of values
``decode``      decoding of values, for parameters
``tokens``      the tokens of a response: metadata, done, error, environment change
``stored``      the rows of ``t``, encoded once
``reader``      tokens and expressions of SQL
``queries``     from a query's text to its results, whose classes are in ``results``
``kept``        tables that store their rows, and transactions
``calls``       remote procedure calls: their names and parameters
``procedures``  the built-in procedures, with output parameters and several results
``declared``    procedures in the catalog, with declared parameters; functions
``describe``    descriptions of a statement before it runs
``session``     one connection: login, then requests
"""
