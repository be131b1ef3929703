"""The benchmark `serve`, which compares HTTP servers with each other.

``apps``     the applications that every server runs, WSGI and ASGI
``tables``   handlers that return 31,000 rows as JSON, in Flask and FastAPI, with onecopy and
             with sqlite3 + orjson
``servers``  the command line of each server, and the costs of its processes
``launch``   starts the servers that have no command of their own
``load``     `wrk` and its figures; slow clients, a client with occasional requests
``rows``     the rows of the definition: responses are compared, servers are measured in turns,
             targets are checked
``*.lua``    the requests of `wrk`
"""
