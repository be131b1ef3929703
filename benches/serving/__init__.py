"""HTTP servers compared with each other: the benchmark `serve`.

``apps``      the applications that every server runs, WSGI and ASGI
``tables``    a handler that returns 31,000 rows as JSON, in Flask and in FastAPI, ours and with
sqlite3 + orjson
``servers``   the command line of each server, and the costs of its processes
``launch``    starts the servers that have no command of their own
``load``      `wrk` and its figures; slow clients, a client with occasional requests
``rows``      the rows of the definition: answers are compared, servers take turns, targets are
checked
``*.lua``     the requests of `wrk`
"""
