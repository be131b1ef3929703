"""The cases of the conformance table: each sends requests to a server through a raw socket.

``lengths``      Content-Length and Transfer-Encoding: where a body ends
``chunks``       the chunked coding
``heads``        names, values, line ends
``targets``      the request line, Host, and sizes over the limits
``answers``      rules that an application cannot break: HEAD, 204, header injection, body lengths
``connections``  keep-alive, pipelining, Expect, HTTP/1.0, slow clients
``wsgi``         PEP 3333: environ, write(), close(), file_wrapper, exceptions
"""

from tests.serve.cases import answers, chunks, connections, heads, lengths, targets, wsgi
from tests.support.cases import Case

#: One case per row.
CASES: list[Case] = [
    *lengths.CASES,
    *chunks.CASES,
    *heads.CASES,
    *targets.CASES,
    *answers.CASES,
    *connections.CASES,
    *wsgi.CASES,
]
