"""HTTP servers beside each other: the room `serve`.

``apps``      the applications that every server runs, WSGI and ASGI
``tables``    a handler that gives 31,000 rows as JSON, in Flask and in FastAPI, ours and with sqlite3 + orjson
``servers``   how each server is started, and what its processes have cost
``launch``    starts the servers that have no command of their own
``load``      `wrk` and what it tells; clients that dribble, a client that asks now and then
``rows``      the rows of the definition: answers compared, turns taken, verdicts
``*.lua``     what `wrk` sends
"""
