"""A small TDS 7.4 responder: SQL Server's wire protocol, without SQL Server.

Written from Microsoft's open specification [MS-TDS]. It lets the three SQL Server drivers log in, run batches and
prepared statements and read rows; it has no SQL engine, no TLS and no storage. What a query may say stands in
``queries``: the table ``t`` of any size, literals, casts to each SQL Server type, parameters given back, and comments that
make the answer fail half-way.

``packets``   packets, framing with back-pressure, the cancel signal
``types``     SQL Server's types: description and value as bytes, and back for parameters
``tokens``    the tokens of an answer: metadata, done, error, environment change
``stored``    the rows of ``t``, encoded once
``queries``   from a query's text to its result
``describe``  what drivers ask about a statement before it runs
``session``    one connection: login, then requests
"""
