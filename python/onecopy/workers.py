"""Worker processes of ``onecopy run``: the process that is started keeps the socket, its workers serve (decision 0093)."""

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

from onecopy import systemd
from onecopy.observe import Metrics, tell
from onecopy.server import Server

if TYPE_CHECKING:
    import subprocess

__all__ = ["Supervisor", "Tie"]

#: More crashes than this within that many seconds, and it is given up: starting would keep the machine busy.
MOST_CRASHES = 10
WITHIN_S = 60.0
#: Seconds past the stop timeout after which a worker is killed.
MARGIN_S = 5.0
#: Seconds in which a worker whose place is taken still answers idle connections.
IDLE_GRACE_S = 3.0
#: Seconds before a worker is started again that did not come up; doubled each time.
PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

#: Seconds that a worker whose interpreter is known to be late gets to stop.
LATE_GRACE_S = 2.0

#: The words of the supervisor to a worker.
_STOP, _RETIRE, _CUT, _REOPEN = b"s", b"r", b"c", b"o"
#: The words of a worker: it is ready; its interpreter is late; it is not any more; it is stuck,
#: since a thread does not release the interpreter's lock, or since all its threads are busy. The
#: stacks of its threads follow the last two, and a zero byte.
_READY, _LATE, _BEATING, _NO_BEAT, _ALL_BUSY = b"RLBST"
#: Has faulthandler write the stacks of all threads, without the interpreter's lock.
_DUMP = signal.SIGRTMAX - 1
#: A terminal and a service manager send these to all processes; they count once, in the supervisor.
_OF_THE_SUPERVISOR = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_MEANINGS = {
    signal.SIGSEGV: "it used memory that is not its own",
    signal.SIGBUS: "it used memory that is not there",
    signal.SIGABRT: "a library found an error and gave up",
    signal.SIGILL: "an instruction that this machine does not know",
    signal.SIGFPE: "it divided by zero",
    signal.SIGKILL: "ended from outside, or by the kernel for want of memory",
}


class Tie:
    """A worker's end of the line to its supervisor: what it says, and that it is there.

    Made before the application is loaded: from then on signals of a terminal are the supervisor's, and the end of the supervisor is
    the end of this process.
    """

    def __init__(self, descriptor: int, stop_timeout: float, timeout: float = 0.0) -> None:
        self._line = socket.socket(fileno=descriptor)
        self._line.set_inheritable(False)
        self._stop_timeout, self._timeout = stop_timeout, timeout
        self._server: Server | None = None
        self._lock = threading.Lock()
        for number in _OF_THE_SUPERVISOR:
            # A function, not SIG_IGN: that would be in force in the programs that the application starts.
            signal.signal(number, lambda *_: None)
        # The supervisor had them blocked when it started this process, so none came before.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OF_THE_SUPERVISOR)
        threading.Thread(target=self._obey, name="onecopy-tie", daemon=True).start()

    def serve(self, server: Server) -> None:
        """Tell that the worker is ready, and serve until the supervisor says otherwise, or is gone."""
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
        """Reports that the interpreter runs, for as long as the process lives."""
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
                    # While the application is loaded nobody is served yet.
                    os._exit(0)
            if word == _RETIRE:
                server.stop(idle_grace=IDLE_GRACE_S)
            elif word == _STOP:
                server.stop()
            elif word == _CUT:
                server.stop(now=True)
            elif not word:
                break
        tell(f"the supervisor of worker {os.getpid()} is gone: it stops")
        server.stop()
        # The application may hold a thread that does not come back; nobody would end this process then.
        threading.Event().wait(self._stop_timeout + MARGIN_S)
        os._exit(1)


class _Worker:
    """A worker process, from the outside."""

    def __init__(self, process: subprocess.Popen[bytes], line: socket.socket, generation: int) -> None:
        self.process, self.line, self.generation = process, line, generation
        self.is_ready = False
        #: Nothing new comes to it: it was told to stop, or another one has its place.
        self.is_leaving = False
        self._told_at = 0.0
        self._kill_at: float | None = None
        #: Since when its interpreter is late.
        self._late_at: float | None = None
        #: The report that it has written since it was stuck.
        self.report: bytearray | None = None
        self.is_killed = False

    def say(self, word: bytes, kill_in_s: float) -> None:
        """Have it stop, in whichever way; it is killed where it does not."""
        self.is_leaving = True
        self._told_at = time.monotonic()
        self._kill_at = self._told_at + kill_in_s
        with contextlib.suppress(OSError):
            self.line.send(word)

    def kill_at(self) -> float | None:
        """When it is to be killed, unless it ends before; soon if its interpreter is late."""
        if self._kill_at is None or self.is_killed:
            return None
        if self._late_at is None:
            return self._kill_at
        return min(self._kill_at, max(self._told_at, self._late_at) + LATE_GRACE_S)

    def kill(self) -> None:
        """Kill it."""
        self.is_killed = True
        self.process.kill()

    def hear(self, words: bytes) -> None:
        """Note what it has written."""
        for at, word in enumerate(words):
            if self.report is not None:
                self.report += words[at:]
                return
            if word == _READY:
                self.is_ready = True
            elif word == _LATE:
                self._late_at = time.monotonic()
            elif word == _BEATING:
                self._late_at = None
            elif word in (_NO_BEAT, _ALL_BUSY):
                self.report = bytearray([word])


class Supervisor:
    """Starts workers on a socket, and others where they die or a newer application is to take their place.

    Args:
        listener: a server that is never run: its socket is bound, and its options are right. Whoever else holds it keeps the
            socket open past the stop.
        command: what starts a worker; ``--as-worker SOCKET,LINE`` is put to it, before a ``--``.
        n_workers: from 1.
        stop_timeout: seconds that workers give to requests under way.
        title: the line that is told when the first worker is ready; ``{url}`` in it is the listener's.
        metrics: where workers count, each by ``--metrics-fd``.
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
        #: Workers of earlier generations leave as those of this one get ready.
        self._generation = 0
        #: The first of the next generation: if it comes up, the others follow.
        self._trial: _Worker | None = None
        self._is_reloading = False
        #: A terminal that is closed says so by SIGHUP too.
        self._leaves_with_terminal = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and _has_terminal()
        self._n_stops = 0
        self._code = 0
        self._crashes: collections.deque[float] = collections.deque()
        self._pause_s, self._start_at = PAUSE_S, 0.0
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Supervise until stopped; return the exit code. For the main thread."""
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

    # What comes from outside.

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
            tell(f"{self._n} workers from now on")

    def _on_line(self, worker: _Worker) -> None:
        try:
            words = worker.line.recv(1 << 16)
        except OSError:
            words = b""
        if not words:
            # It has ended, or is about to: SIGCHLD tells.
            self._selector.unregister(worker.line)
            return
        was_ready = worker.is_ready
        worker.hear(words)
        if worker.is_ready and not was_ready:
            self._pause_s = PAUSE_S
            if worker is self._trial:
                self._trial, self._generation = None, worker.generation
                if not self._is_reloading:
                    tell(self._title, "")
                    systemd.notify("READY=1")
        if worker.report is not None and worker.report.endswith(b"\0") and not worker.is_killed:
            self._on_stuck(worker, worker.report)

    def _on_stuck(self, worker: _Worker, report: bytearray) -> None:
        """A worker makes no progress: it is killed, and replaced when it has ended."""
        why = "has run no Python code: a thread does not release the interpreter's lock"
        if report[0] == _ALL_BUSY:
            why = "has made no progress: each of its threads is in a request"
        stacks = _stacks(bytes(report[1:-1]).decode("utf-8", "replace"))
        then = "it is killed" if worker.is_leaving else "it is killed and replaced"
        line = f"worker {worker.process.pid} {why}, for {self._timeout:g} s; {then}"
        tell(f"{line}, its requests are cut\n{stacks}")
        worker.kill()

    def _on_end(self, worker: _Worker) -> None:
        """A worker is no more: whether that was to be, and what is done about it."""
        self._workers.remove(worker)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(worker.line)
        worker.line.close()
        code = worker.process.returncode
        how = f"worker {worker.process.pid} {_how(code)}"
        if worker.is_leaving:
            if code and worker.is_ready:
                tell(f"{how} while it stopped; its requests under way were cut")
                self._code = self._code or (1 if self._n_stops else 0)
            return
        if worker is self._trial:
            self._trial = None
            if not self._generation:
                return self._give_up(how if code < 0 else None, code)
            self._end_reload(f"reload failed: {how} before it was ready; the former workers serve on")
            return
        if worker.report is not None:
            return  # Reported when it was killed, and not a crash.
        is_ready = worker.is_ready
        cut = "; its requests under way were cut" if is_ready else " before it was ready"
        self._crashes.append(time.monotonic())
        while self._crashes[0] < time.monotonic() - WITHIN_S:
            self._crashes.popleft()
        if len(self._crashes) > MOST_CRASHES:
            tell(how + cut)
            return self._give_up(f"more than {MOST_CRASHES} workers died within {WITHIN_S:.0f} s: given up", 1)
        if is_ready:
            return tell(f"{how}{cut}; another one takes its place")
        if not any(other.is_ready and not other.is_leaving for other in self._workers):
            return self._give_up(f"{how}{cut}, and no other one serves: given up", code)
        tell(f"{how}{cut}; the next one is started in {self._pause_s:.0f} s")
        self._start_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    # What is done.

    def _start(self, generation: int) -> _Worker:
        """Start a worker: by exec, since this process or a library in it may have threads.

        Raises:
            OSError: the system has no process or descriptor left.
        """
        # Not for the workers themselves, which load this module too.
        import subprocess

        if self._listener is None:
            raise OSError("it is being stopped")
        listener = self._listener.fileno()
        ours, theirs = socket.socketpair()
        at = self._command.index("--") if "--" in self._command else len(self._command)
        command = [*self._command]
        lent = [listener, theirs.fileno()]
        command[at:at] = ["--as-worker", f"{lent[0]},{lent[1]}"]
        if self._metrics is not None:
            lent.append(self._metrics.descriptor)
            command[at:at] = ["--metrics-fd", str(lent[2])]
        # The mask is inherited: no signal ends a worker before it can say what it does with signals.
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
        """Start the first worker of a new generation."""
        try:
            self._trial = self._start(self._generation + 1)
        except OSError as error:
            line = f"a worker cannot be started: {error}"
            if not self._generation:
                return self._give_up(line, 1)
            self._end_reload(f"reload failed: {line}; the former workers serve on")

    def _fill_up(self) -> None:
        """Start what is missing of this generation, and send away what is too many."""
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
                tell(f"a worker cannot be started: {error}; the next try is in {self._pause_s:.0f} s")
                self._start_at = time.monotonic() + self._pause_s
        n_ready = sum(worker.is_ready for worker in current)
        for worker in former[: max(0, n_ready + len(former) - self._n)]:
            worker.say(_RETIRE, self._kill_in_s)
        for worker in current[self._n :]:
            worker.say(_RETIRE, self._kill_in_s)
        if self._is_reloading and not self._trial and n_ready >= self._n:
            self._end_reload(f"reloaded: {n_ready} new workers serve")

    def _reload(self) -> None:
        if not self._generation:
            return  # The first worker has not come up: it has the current files.
        if self._trial:
            # The files have changed again since it read them.
            self._trial.is_leaving = True
            self._trial.process.kill()
        if not self._is_reloading:
            self._is_reloading = True
            systemd.notify_reloading()
        self._try()

    def _end_reload(self, line: str) -> None:
        tell(line)
        self._is_reloading = False
        systemd.notify("READY=1")

    def _stop(self) -> None:
        """The first time in order, the second time at once, and then by force."""
        self._n_stops += 1
        if self._n_stops == 1:
            systemd.notify("STOPPING=1")
            self._listener = None  # Closed: who connects now is refused, and does not wait for nobody.
        for worker in self._workers:
            if self._n_stops == 1:
                worker.say(_STOP, self._kill_in_s)
            elif self._n_stops == 2:
                worker.say(_CUT, MARGIN_S)
            else:
                worker.kill()

    def _give_up(self, line: str | None, code: int) -> None:
        if line:
            tell(line)
        self._code = code if code > 0 else 1
        self._n_stops = max(1, self._n_stops)
        self._listener = None
        for worker in self._workers:
            worker.say(_CUT, MARGIN_S)

    def _kill_late(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if (at := worker.kill_at()) is not None and at <= now:
                tell(f"worker {worker.process.pid} has not ended in its time: it is killed")
                worker.kill()


def _stacks(dump: str) -> str:
    """The stacks of threads that are in code of the application, of a dump of faulthandler."""
    folder = os.path.dirname(__file__)
    ours = tuple(f'{os.path.join(folder, name)}"' for name in ("server.py", "workers.py"))
    of_threading = f'{threading.__file__}"'
    stacks = []
    for stack in dump.strip().split("\n\n"):
        files = [line.strip().removeprefix('File "') for line in stack.splitlines()[1:]]
        inner = next((file for file in files if not file.startswith(of_threading)), None)
        # A thread without a request has frames of `threading` only.
        if inner is not None and inner != "<no Python frame>" and not inner.startswith(ours):
            stacks.append(stack)
    return "\n".join(stacks or ["no thread is in Python code"])


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
    """Signals as bytes on a socket, their numbers."""
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
