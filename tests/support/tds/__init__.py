"""A small TDS responder, 7.2 to 7.4: SQL Server's wire protocol, without SQL Server.

Written from Microsoft's open specification [MS-TDS]. It lets the three SQL Server drivers log in, run batches and
prepared statements, call procedures and read rows; it has no SQL engine and no TLS. What a query may say stands in
``queries``: the table ``t`` of any size, literals, casts to each SQL Server type, parameters given back, messages, tables
that keep their rows in memory, transactions, and comments that make the answer fail half-way.

``packets``   packets, framing with back-pressure, the cancel signal
``types``     SQL Server's types: description and value as bytes
``decode``    and back, for parameters
``tokens``    the tokens of an answer: metadata, done, error, environment change
``stored``    the rows of ``t``, encoded once
``reader``    words and expressions of SQL
``queries``   from a query's text to its results, whose kinds stand in ``results``
``kept``      tables that keep their rows, and transactions
``calls``     remote procedure calls: what they name, and their parameters
``procedures``  those of the responder's own, with output parameters and several results
``declared``  those that the catalog knows, with the parameters that they declare; functions
``describe``  what drivers ask about a statement before it runs
``session``    one connection: login, then requests
"""
