"""The rows of the conformance table, each a case that speaks to a server through a raw socket.

``lengths``      Content-Length and Transfer-Encoding: where a body ends
``chunks``       the chunked coding
``heads``        names, values, line ends
``targets``      the request line, Host, and what is too large
``answers``      what an application may not break: HEAD, 204, header injection, bodies against their length
``connections``  keep-alive, pipelining, Expect, HTTP/1.0, slow clients
``wsgi``         PEP 3333: environ, write(), close(), file_wrapper, exceptions
"""

from tests.serve.cases import answers, chunks, connections, heads, lengths, targets, wsgi
from tests.support.cases import Case

#: One for each row.
CASES: list[Case] = [
    *lengths.CASES,
    *chunks.CASES,
    *heads.CASES,
    *targets.CASES,
    *answers.CASES,
    *connections.CASES,
    *wsgi.CASES,
]
