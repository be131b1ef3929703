"""``onecopy run``: the supervisor, and the workers that serve on its socket (decision 0093)."""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import os
import selectors
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from onecopy import _systemd
from onecopy.observe import Metrics, log
from onecopy.server import Server

if TYPE_CHECKING:
    import subprocess

__all__ = ["Supervisor", "Tie"]

#: After more crashes than this within `WITHIN_S` seconds, the supervisor gives up.
MOST_CRASHES = 10
WITHIN_S = 60.0
#: Seconds after the stop timeout, after which a worker that has not ended is killed.
MARGIN_S = 5.0
#: Seconds in which a worker that was replaced still answers requests on idle connections.
IDLE_GRACE_S = 3.0
#: Seconds until a worker that failed to start is started again; the pause doubles each time.
PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

#: Seconds that a late worker, which runs no Python code, has for stopping; then it is killed.
LATE_GRACE_S = 2.0

#: Commands of the supervisor to a worker.
_STOP, _RETIRE, _CUT, _REOPEN = b"s", b"r", b"c", b"o"
#: Reports of a worker: it is ready; its interpreter is late; its interpreter runs again; it is
#: stuck, because a thread does not release the interpreter's lock, or because all threads are busy.
#: The last two are followed by the stacks of its threads, and a zero byte.
_READY, _LATE, _BEATING, _NO_BEAT, _ALL_BUSY = b"RLBST"
#: Makes faulthandler write the stacks of all threads, without the interpreter's lock.
_DUMP = signal.SIGRTMAX - 1
#: Terminals and service managers send these to all processes; only the supervisor handles them.
_OF_THE_SUPERVISOR = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_MEANINGS = {
    signal.SIGSEGV: "it used memory that is not its own",
    signal.SIGBUS: "it accessed invalid memory",
    signal.SIGABRT: "a library found an error and gave up",
    signal.SIGILL: "an instruction that this machine does not support",
    signal.SIGFPE: "it divided by zero",
    signal.SIGKILL: "killed by another process, or by the kernel when memory ran out",
}


class Tie:
    """A worker's connection to its supervisor, for commands and reports.

    It is created before the application is loaded. From then on this process ignores the signals
    that a terminal sends, because the supervisor handles them, and ends when the supervisor ends.
    """

    def __init__(self, descriptor: int, stop_timeout: float, timeout: float = 0.0) -> None:
        self._line = socket.socket(fileno=descriptor)
        self._line.set_inheritable(False)
        self._stop_timeout, self._timeout = stop_timeout, timeout
        self._server: Server | None = None
        self._lock = threading.Lock()
        for number in _OF_THE_SUPERVISOR:
            # A function, since programs that the application starts would inherit SIG_IGN.
            signal.signal(number, lambda *_: None)
        # The supervisor blocked these signals when it started this process, so none arrived before.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OF_THE_SUPERVISOR)
        threading.Thread(target=self._obey, name="onecopy-tie", daemon=True).start()

    def serve(self, server: Server) -> None:
        """Report that the worker is ready; serve until the supervisor stops the worker or ends."""
        with self._lock:
            self._server = server
        with contextlib.suppress(OSError):
            self._line.send(bytes([_READY]))
        if self._timeout:
            faulthandler.register(_DUMP, self._line.fileno(), all_threads=True)
            server._core.watch(self._timeout, self._line.fileno(), _DUMP)
            threading.Thread(target=self._beat, args=(server,), daemon=True).start()
        server.run(signals=False)

    def _beat(self, server: Server) -> None:
        """Increment the watchdog's counter regularly, as long as Python code can run."""
        pause, beat = threading.Event(), server._core.beat
        while not pause.wait(min(0.25, self._timeout / 8)):
            beat()

    def _obey(self) -> None:
        while True:
            try:
                word = self._line.recv(1)
            except OSError:
                word = b""
            with self._lock:
                server = self._server
                if word == _REOPEN:
                    if server is not None:
                        server.reopen_access_log()
                    continue
                if server is None:
                    # The application is still being loaded, so there are no requests.
                    os._exit(0)
            if word == _RETIRE:
                server.stop(idle_grace=IDLE_GRACE_S)
            elif word == _STOP:
                server.stop()
            elif word == _CUT:
                server.stop(now=True)
            elif not word:
                break
        log(f"the supervisor of worker {os.getpid()} has ended: the worker stops")
        server.stop()
        # A thread of the application may hang, and nothing else would end this process.
        threading.Event().wait(self._stop_timeout + MARGIN_S)
        os._exit(1)


class _Worker:
    """The supervisor's record of the state of one worker process."""

    def __init__(self, process: subprocess.Popen[bytes], line: socket.socket, generation: int) -> None:
        self.process, self.line, self.generation = process, line, generation
        self.is_ready = False
        #: True if the worker gets no new connections, because it was stopped or replaced.
        self.is_leaving = False
        self._stopped_at = 0.0
        self._kill_at: float | None = None
        #: The time since which the worker's interpreter is late; `None` if it is not late.
        self._late_at: float | None = None
        #: The report that the worker sent when it was stuck; `None` before.
        self.report: bytearray | None = None
        self.is_killed = False

    def send(self, command: bytes, kill_in_s: float) -> None:
        """Send a stop command. If the worker still runs after ``kill_in_s``, it is killed."""
        self.is_leaving = True
        self._stopped_at = time.monotonic()
        self._kill_at = self._stopped_at + kill_in_s
        with contextlib.suppress(OSError):
            self.line.send(command)

    def kill_at(self) -> float | None:
        """Return the time to kill the worker, or None. It is earlier if no Python code runs."""
        if self._kill_at is None or self.is_killed:
            return None
        if self._late_at is None:
            return self._kill_at
        return min(self._kill_at, max(self._stopped_at, self._late_at) + LATE_GRACE_S)

    def kill(self) -> None:
        """Kill the worker process."""
        self.is_killed = True
        self.process.kill()

    def receive(self, reports: bytes) -> None:
        """Record one-byte reports. A dump of all stacks follows `_NO_BEAT` and `_ALL_BUSY`."""
        for at, report in enumerate(reports):
            if self.report is not None:
                self.report += reports[at:]
                return
            if report == _READY:
                self.is_ready = True
            elif report == _LATE:
                self._late_at = time.monotonic()
            elif report == _BEATING:
                self._late_at = None
            elif report in (_NO_BEAT, _ALL_BUSY):
                self.report = bytearray([report])


class Supervisor:
    """Starts worker processes that serve on one socket. Replaces them if they die, and on a reload.

    Args:
        listener: a server that has bound the socket and checked the options, but is never run. If
            another process also has the socket open, the socket stays open after the supervisor
            stops.
        command: the command line of a worker; ``--as-worker SOCKET,LINE`` is inserted before ``--``.
        n_workers: the number of workers, from 1.
        stop_timeout: the number of seconds that active requests may take after a stop.
        title: the line to log when the first worker is ready; ``{url}`` is the listener's URL.
        metrics: the shared counters of the workers, passed by ``--metrics-fd``.
        timeout: seconds without progress after which a worker is killed and replaced.
    """

    def __init__(
        self,
        listener: Server,
        command: Sequence[str],
        n_workers: int,
        stop_timeout: float,
        title: str,
        metrics: Metrics | None = None,
        timeout: float = 0.0,
    ) -> None:
        self._listener: Server | None = listener
        self._timeout = timeout
        self._command, self._n, self._title = [*command], n_workers, title.replace("{url}", listener.url)
        self._metrics = metrics
        self._kill_in_s = stop_timeout + MARGIN_S
        self._workers: list[_Worker] = []
        #: Workers of earlier generations are stopped as those of the current one become ready.
        self._generation = 0
        #: The first worker of the next generation: when it is ready, the others are started.
        self._trial: _Worker | None = None
        self._is_reloading = False
        #: True if SIGHUP may mean that the terminal has closed, which then stops the server.
        self._leaves_with_terminal = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and _has_terminal()
        self._n_stops = 0
        self._code = 0
        self._crashes: collections.deque[float] = collections.deque()
        self._pause_s, self._start_at = PAUSE_S, 0.0
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Supervise until stopped; return the exit code. Must run in the main thread."""
        with _signals() as woken, self._selector:
            self._selector.register(woken, selectors.EVENT_READ)
            self._try()
            while self._workers or not self._n_stops:
                for key, _ in self._selector.select(self._wait_s()):
                    if key.data is None:
                        for number in woken.recv(64):
                            self._on_signal(number)
                    else:
                        self._on_line(key.data)
                for worker in [*self._workers]:
                    if worker.process.poll() is not None:
                        self._on_end(worker)
                self._kill_late()
                self._fill_up()
        return self._code

    def _wait_s(self) -> float | None:
        moments = [at for worker in self._workers if (at := worker.kill_at()) is not None]
        if self._start_at:
            moments.append(self._start_at)
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    # Handlers of signals, of reports and of the ends of workers.

    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGTERM):
            self._stop()
        elif number == signal.SIGHUP and not self._n_stops:
            if self._leaves_with_terminal and not _has_terminal():
                return self._stop()
            self._reload()
        elif number == signal.SIGUSR1:
            for worker in self._workers:
                with contextlib.suppress(OSError):
                    worker.line.send(_REOPEN)
        elif number in (signal.SIGTTIN, signal.SIGTTOU):
            self._n = max(1, self._n + (1 if number == signal.SIGTTIN else -1))
            log(f"{self._n} {'worker' if self._n == 1 else 'workers'} from now on")

    def _on_line(self, worker: _Worker) -> None:
        try:
            words = worker.line.recv(1 << 16)
        except OSError:
            words = b""
        if not words:
            # The worker has ended, or is about to end: SIGCHLD follows.
            self._selector.unregister(worker.line)
            return
        was_ready = worker.is_ready
        worker.receive(words)
        if worker.is_ready and not was_ready:
            self._pause_s = PAUSE_S
            if worker is self._trial:
                self._trial, self._generation = None, worker.generation
                if not self._is_reloading:
                    log(self._title, "")
                    _systemd.notify("READY=1")
        if worker.report is not None and worker.report.endswith(b"\0") and not worker.is_killed:
            self._on_stuck(worker, worker.report)

    def _on_stuck(self, worker: _Worker, report: bytearray) -> None:
        """Kill a worker that makes no progress; it is replaced after its process has ended."""
        why = "has run no Python code: a thread does not release the interpreter's lock"
        if report[0] == _ALL_BUSY:
            why = "has made no progress: each of its threads is in a request"
        stacks = _stacks(bytes(report[1:-1]).decode("utf-8", "replace"))
        then = "it is killed" if worker.is_leaving else "it is killed and replaced"
        line = f"worker {worker.process.pid} {why}, for {self._timeout:g} s; {then}"
        log(f"{line}, its requests are aborted\n{stacks}")
        worker.kill()

    def _on_end(self, worker: _Worker) -> None:
        """Handle the end of a worker process, expected or unexpected."""
        self._workers.remove(worker)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(worker.line)
        worker.line.close()
        code = worker.process.returncode
        how = f"worker {worker.process.pid} {_how(code)}"
        if worker.is_leaving:
            if code and worker.is_ready:
                log(f"{how} while it stopped; its active requests were aborted")
                self._code = self._code or (1 if self._n_stops else 0)
            return
        if worker is self._trial:
            self._trial = None
            if not self._generation:
                return self._give_up(how if code < 0 else None, code)
            self._end_reload(f"reload failed: {how} before it was ready; the former workers serve on")
            return
        if worker.report is not None:
            return  # It was killed and reported before, and is not a crash.
        is_ready = worker.is_ready
        cut = "; its active requests were aborted" if is_ready else " before it was ready"
        self._crashes.append(time.monotonic())
        while self._crashes[0] < time.monotonic() - WITHIN_S:
            self._crashes.popleft()
        if len(self._crashes) > MOST_CRASHES:
            log(how + cut)
            return self._give_up(f"more than {MOST_CRASHES} workers died within {WITHIN_S:.0f} s: given up", 1)
        if is_ready:
            return log(f"{how}{cut}; it is replaced")
        if not any(other.is_ready and not other.is_leaving for other in self._workers):
            return self._give_up(f"{how}{cut}, and no other one serves: given up", code)
        log(f"{how}{cut}; the next one is started in {self._pause_s:.0f} s")
        self._start_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    # Starting and stopping workers.

    def _start(self, generation: int) -> _Worker:
        """Start a worker by fork and exec, because this process may have threads.

        Raises:
            OSError: the limit of processes or descriptors is reached.
        """
        # Imported on use, since the workers load this module too.
        import subprocess

        if self._listener is None:
            raise OSError("the server is stopping")
        listener = self._listener.fileno()
        ours, theirs = socket.socketpair()
        at = self._command.index("--") if "--" in self._command else len(self._command)
        command = [*self._command]
        lent = [listener, theirs.fileno()]
        command[at:at] = ["--as-worker", f"{lent[0]},{lent[1]}"]
        if self._metrics is not None:
            lent.append(self._metrics.descriptor)
            command[at:at] = ["--metrics-fd", str(lent[2])]
        # The signal mask is inherited, so no signal ends a worker before its handlers are
        # installed.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_SUPERVISOR)
        try:
            process = subprocess.Popen(command, pass_fds=lent)
        except OSError:
            ours.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()
        worker = _Worker(process, ours, generation)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        return worker

    def _try(self) -> None:
        """Start the first worker of a new generation; the others start when it is ready."""
        try:
            self._trial = self._start(self._generation + 1)
        except OSError as error:
            line = f"a worker cannot be started: {error}"
            if not self._generation:
                return self._give_up(line, 1)
            self._end_reload(f"reload failed: {line}; the former workers serve on")

    def _fill_up(self) -> None:
        """Start missing workers of the current generation; stop surplus and older workers."""
        if self._n_stops or not self._generation:
            return
        staying = [worker for worker in self._workers if not worker.is_leaving and worker is not self._trial]
        current = [worker for worker in staying if worker.generation == self._generation]
        former = [worker for worker in staying if worker.generation < self._generation]
        if self._start_at <= time.monotonic():
            self._start_at = 0.0
            try:
                current += [self._start(self._generation) for _ in range(self._n - len(current))]
            except OSError as error:
                log(f"a worker cannot be started: {error}; the next attempt is in {self._pause_s:.0f} s")
                self._start_at = time.monotonic() + self._pause_s
        n_ready = sum(worker.is_ready for worker in current)
        for worker in former[: max(0, n_ready + len(former) - self._n)]:
            worker.send(_RETIRE, self._kill_in_s)
        for worker in current[self._n :]:
            worker.send(_RETIRE, self._kill_in_s)
        if self._is_reloading and not self._trial and n_ready >= self._n:
            self._end_reload(f"reloaded: {n_ready} new workers serve")

    def _reload(self) -> None:
        if not self._generation:
            return  # The first worker is not ready yet: it loads the current files.
        if self._trial:
            # The files have changed again since this worker loaded them.
            self._trial.is_leaving = True
            self._trial.process.kill()
        if not self._is_reloading:
            self._is_reloading = True
            _systemd.notify_reloading()
        self._try()

    def _end_reload(self, line: str) -> None:
        log(line)
        self._is_reloading = False
        _systemd.notify("READY=1")

    def _stop(self) -> None:
        """Stop the workers. The first call does so gracefully, the second aborts their requests,
        and a further one kills them."""
        self._n_stops += 1
        if self._n_stops == 1:
            _systemd.notify("STOPPING=1")
            self._listener = None  # Closed, so that new connections are refused and do not wait in vain.
        for worker in self._workers:
            if self._n_stops == 1:
                worker.send(_STOP, self._kill_in_s)
            elif self._n_stops == 2:
                worker.send(_CUT, MARGIN_S)
            else:
                worker.kill()

    def _give_up(self, line: str | None, code: int) -> None:
        if line:
            log(line)
        self._code = code if code > 0 else 1
        self._n_stops = max(1, self._n_stops)
        self._listener = None
        for worker in self._workers:
            worker.send(_CUT, MARGIN_S)

    def _kill_late(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if (at := worker.kill_at()) is not None and at <= now:
                log(f"worker {worker.process.pid} did not end in time: it is killed")
                worker.kill()


def _stacks(dump: str) -> str:
    """Return the stacks of the application's threads from ``dump``, the output of faulthandler."""
    folder = os.path.dirname(__file__)
    ours = tuple(f'{os.path.join(folder, name)}"' for name in ("server.py", "_supervisor.py"))
    of_threading = f'{threading.__file__}"'
    stacks = []
    for stack in dump.strip().split("\n\n"):
        files = [line.strip().removeprefix('File "') for line in stack.splitlines()[1:]]
        inner = next((file for file in files if not file.startswith(of_threading)), None)
        # A thread without a request has only frames of `threading`.
        if inner is not None and inner != "<no Python frame>" and not inner.startswith(ours):
            stacks.append(stack)
    return "\n".join(stacks or ["no thread runs Python code"])


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    meanings = {number.value: meaning for number, meaning in _MEANINGS.items()}
    return f"died by {names.get(-code, f'signal {-code}')} ({meanings.get(-code, 'ended from outside')})"


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _signals() -> Iterator[socket.socket]:
    """Yield a socket from which the number of each received signal is read as one byte."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    former_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    numbers = (*_OF_THE_SUPERVISOR, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU)
    former = [signal.signal(number, lambda *_: None) for number in numbers]
    try:
        yield reader
    finally:
        for number, action in zip(numbers, former, strict=True):
            signal.signal(number, action)
        signal.set_wakeup_fd(former_fd)
        reader.close()
        writer.close()
