"""A gunicorn worker class that serves with onecopy's server, in gunicorn's processes and with its
settings (``gunicorn -k onecopy.gunicorn.Worker``).

If gunicorn's configuration file imports this module, ``-k onecopy`` selects the class too.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
import os
import select
import threading
from collections.abc import Callable, Iterable
from typing import Any

from gunicorn import workers
from gunicorn.workers import base

from onecopy.server import Limits, Server

__all__ = ["Worker"]

#: Seconds in which a worker that stops still answers requests on idle connections; gunicorn has
#: already started its successor.
IDLE_GRACE_S = 1.0

# gunicorn looks up short names in this dict, and otherwise only among its own entry points.
workers.SUPPORTED_WORKERS.setdefault("onecopy", "onecopy.gunicorn.Worker")


class Worker(base.Worker):  # type: ignore[misc]  # gunicorn has no types.
    """Serves each of gunicorn's sockets with an `onecopy.Server`.

    Supported settings of gunicorn: ``threads`` (per socket), ``keepalive``, ``graceful_timeout``,
    ``worker_connections``, ``limit_request_fields``, ``max_requests``, ``secure_scheme_headers``
    with ``forwarded_allow_ips``, and all settings of processes. As with ``gthread``, ``timeout``
    applies to a worker in which all threads hang, not to a single request. Not supported: the
    access log, TLS, ``proxy_protocol``, ``limit_request_line``, ``limit_request_field_size``,
    ``pre_request`` and ``post_request``.
    """

    def load_wsgi(self) -> None:
        """Load the application and create the servers. An error in this method ends gunicorn with
        the message of the error."""
        cfg = self.cfg
        if cfg.is_ssl:
            raise RuntimeError(
                "onecopy's worker does not support TLS\nremove `certfile` and `keyfile`, and let the proxy do it"
            )
        super().load_wsgi()
        if cfg.accesslog:
            self.log.warning("onecopy's worker does not write gunicorn's access log")
        limits = Limits(
            idle_timeout=cfg.keepalive,
            stop_timeout=cfg.graceful_timeout,
            max_headers=cfg.limit_request_fields or Limits().max_headers,
            max_connections=cfg.worker_connections,
        )
        app = _application(self.wsgi, cfg, self._count)
        several = cfg.workers > 1
        self._servers = [
            Server(app, f"fd://{sock.fileno()}", threads=cfg.threads, limits=limits, multiprocess=several)
            for sock in self.sockets
        ]
        self._counter = itertools.count(1)

    def run(self) -> None:
        """Serve until gunicorn stops the worker, or the gunicorn process has ended."""
        # gunicorn kills only workers that have notified it before. The worker notifies it now,
        # because the first request may hold the interpreter's lock.
        self.notify()
        for server in self._servers:
            server.start()
        try:
            while self.alive and os.getppid() == self.ppid:
                self._beat()
            stops = [
                threading.Thread(target=server.stop, kwargs={"idle_grace": IDLE_GRACE_S}) for server in self._servers
            ]
            for stop in stops:
                stop.start()
            while any(stop.is_alive() for stop in stops):
                self._beat()
        except SystemExit:
            # SIGQUIT, SIGINT and SIGABRT stop the worker at once.
            for server in self._servers:
                server.stop(now=True)
            raise

    def _beat(self) -> None:
        """Notify gunicorn that this process is alive; then wait briefly, or until a signal
        arrives."""
        self.notify()
        if select.select([self.PIPE[0]], [], [], min(self.timeout or 1.0, 0.5))[0]:
            os.read(self.PIPE[0], 64)

    def _count(self) -> None:
        self.nr = next(self._counter)
        if self.nr == self.max_requests:
            self.log.info("Autorestarting worker after current request.")
            self.alive = False
            os.write(self.PIPE[1], b"1")


def _application(
    app: Callable[..., Iterable[bytes]], cfg: Any, count: Callable[[], None]
) -> Callable[..., Iterable[bytes]]:
    """Wrap the application as gunicorn does: count requests, and set the URL scheme that a trusted
    proxy reports."""
    counts = cfg.max_requests > 0
    schemes = [("HTTP_" + name.upper().replace("-", "_"), secure) for name, secure in cfg.secure_scheme_headers.items()]
    allowed = [*cfg.forwarded_allow_ips]
    networks = [ipaddress.ip_network(address, strict=False) for address in allowed if address != "*"]

    @functools.lru_cache(maxsize=1024)
    def is_trusted(peer: str) -> bool:
        # A unix socket has no peer address.
        return "*" in allowed or not peer or any(ipaddress.ip_address(peer) in network for network in networks)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if counts:
            count()
        said = [environ[name] == secure for name, secure in schemes if name in environ]
        if said and is_trusted(environ.get("REMOTE_ADDR", "")):
            # Two headers contradict each other: the insecure scheme is assumed.
            environ["wsgi.url_scheme"] = "https" if all(said) else "http"
        return app(environ, start_response)

    return application if counts or (schemes and allowed) else app
