//! `onecopy._core.Server`: binds, starts and stops a server.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onecopy_wire::lock::lock;

use onecopy_serve::{
    AccessLog, Address, Config, Handle, Limits, Metrics, Pulse, Socket, Stopped, Tls, TlsProblem,
    Watchdog,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

use super::handler::{ServerVariables, Wsgi};
use super::liveness;
use super::observe::{self, LogDestination};
use crate::raw::descriptor;
use crate::raw::gil;

/// The server of a WSGI application. The public class `onecopy.Server` uses it.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Server {
    state: Mutex<Option<onecopy_serve::Server>>,
    handle: Handle,
    address: Address,
    app: Py<PyAny>,
    place: ServerVariables,
    threads: Threads,
    metrics: Metrics,
    access_log: Option<AccessLog>,
    pulse: Pulse,
    max_connections: usize,
}

/// The `threading.Thread` objects of a server.
type Threads = Arc<Mutex<Vec<Py<PyAny>>>>;

/// The address of the server's socket.
#[derive(FromPyObject)]
enum Bind {
    /// The host and the port of a TCP socket.
    Inet(String, u16),
    /// The path of a unix socket.
    #[pyo3(transparent)]
    Unix(PathBuf),
    /// The file descriptor of a listening socket. The caller closes it.
    #[pyo3(transparent)]
    Descriptor(i32),
}

/// The value of `Server.address`.
#[derive(IntoPyObject)]
enum Listens {
    Inet(String, u16),
    #[pyo3(transparent)]
    Unix(std::ffi::OsString),
}

/// The options of `Server`, with the names of the Python arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ServerOptions {
    threads: usize,
    streams: usize,
    multiprocess: bool,
    header_timeout: f64,
    body_timeout: f64,
    idle_timeout: f64,
    write_timeout: f64,
    stop_timeout: f64,
    max_header_bytes: usize,
    max_headers: usize,
    max_body_bytes: usize,
    max_body_memory_bytes: usize,
    max_connections: usize,
}

fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| PyValueError::new_err(format!("`{name}` is in seconds from 0")))
}

/// Converts a TLS error to an exception: `OSError` for an unreadable file, otherwise `ValueError`.
fn no_tls(error: onecopy_serve::Error) -> PyErr {
    let onecopy_serve::Error::Tls { problem, .. } = &error else {
        return PyOSError::new_err(error.to_string());
    };
    match problem {
        TlsProblem::Read(source) => io::Error::new(source.kind(), error.to_string()).into(),
        _ => PyValueError::new_err(error.to_string()),
    }
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (app, bind, options, tls=None, mode=None, access_log=None, metrics=None))]
    fn new(
        app: Py<PyAny>,
        bind: Bind,
        options: ServerOptions,
        tls: Option<(PathBuf, PathBuf)>,
        mode: Option<u32>,
        access_log: Option<(LogDestination, String, bool)>,
        metrics: Option<&Bound<'_, observe::Metrics>>,
    ) -> PyResult<Server> {
        let mut limits = Limits::default();
        limits.head = seconds("header_timeout", options.header_timeout)?;
        limits.body_stall = seconds("body_timeout", options.body_timeout)?;
        limits.idle = seconds("idle_timeout", options.idle_timeout)?;
        limits.write_stall = seconds("write_timeout", options.write_timeout)?;
        limits.stop = seconds("stop_timeout", options.stop_timeout)?;
        limits.head_bytes = options.max_header_bytes;
        limits.n_fields = options.max_headers;
        limits.underscores = false;
        limits.body_bytes = options.max_body_bytes;
        limits.body_memory_bytes = options.max_body_memory_bytes;
        limits.n_connections = options.max_connections;
        let mut config = Config::default();
        config.limits = limits;
        config.handler_threads = options.threads;
        config.workers = options.streams;
        config.on_trouble = Some(Arc::new(|error| {
            // All connections wait for this thread, so it must not wait for the GIL.
            let _ = writeln!(
                io::stderr(),
                "onecopy: process {} takes no connections now: {error}\n\
                 allow it more open files (`ulimit -n`), or fewer connections",
                std::process::id()
            );
        }));
        if let Some(metrics) = metrics {
            config.metrics = metrics.get().slot()?;
        }
        let metrics = config.metrics.clone();
        let access_log = observe::access_log(access_log, &mut config)?;
        let threads = Threads::default();
        let started = Arc::clone(&threads);
        config.spawn = Arc::new(move |name, run| {
            let thread = spawn(name, run)?;
            lock(&started).push(thread);
            Ok(())
        });
        let scheme = if tls.is_some() { "https" } else { "http" };
        if let Some((certificates, key)) = tls {
            config.tls = Some(Tls::from_files(&certificates, &key).map_err(no_tls)?);
        }
        let failed = |e: onecopy_serve::Error| PyOSError::new_err(e.to_string());
        let socket = match &bind {
            Bind::Inet(host, port) => {
                let found = std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), *port))
                    .map_err(|e| PyOSError::new_err(format!("`{host}` has no address: {e}")))?
                    .next();
                let found =
                    found.ok_or_else(|| PyOSError::new_err(format!("`{host}` has no address")))?;
                Socket::bind(found.into())
            }
            Bind::Unix(path) => Socket::bind_with_mode(Address::Unix(path.clone()), mode),
            Bind::Descriptor(number) => Socket::of_descriptor(descriptor::duplicate(*number)?),
        }
        .map_err(failed)?;
        let server = onecopy_serve::Server::on(socket, config).map_err(failed)?;
        let address = server.address().clone();
        // PEP 3333 requires a server name and port. A unix socket has `localhost` and the scheme's
        // port.
        let (name, port) = match (&bind, &address) {
            (Bind::Inet(host, _), Address::Ip(ip)) => (host.clone(), ip.port()),
            (_, Address::Ip(ip)) => (ip.ip().to_string(), ip.port()),
            (_, Address::Unix(_)) => {
                let port = if scheme == "https" { 443 } else { 80 };
                ("localhost".to_owned(), port)
            }
        };
        Ok(Server {
            handle: server.handle(),
            max_connections: server.max_connections(),
            pulse: Pulse::default(),
            address,
            state: Mutex::new(Some(server)),
            app,
            threads,
            metrics,
            access_log,
            place: ServerVariables {
                name,
                port: port.to_string(),
                scheme,
                multithread: options.threads > 1,
                multiprocess: options.multiprocess,
            },
        })
    }

    /// The host and port of the listening socket, or the path of the unix socket.
    #[getter]
    fn address(&self) -> Listens {
        match &self.address {
            Address::Ip(ip) => Listens::Inet(ip.ip().to_string(), ip.port()),
            Address::Unix(path) => Listens::Unix(path.clone().into_os_string()),
        }
    }

    /// The maximum number of concurrent connections.
    #[getter]
    fn max_connections(&self) -> usize {
        self.max_connections
    }

    /// Starts a watchdog that checks the progress of the running server. It writes reports to the
    /// socket ``line`` in the format of `onecopy._supervisor`. The handler of the signal ``dump``
    /// writes the stacks of all threads to this socket.
    fn watch(&self, timeout: f64, line: i32, dump: i32) -> PyResult<()> {
        let watchdog = Watchdog {
            timeout: seconds("timeout", timeout)?,
            pulse: self.pulse.clone(),
            on_liveness: liveness::reporter(descriptor::duplicate(line)?, dump),
        };
        let mut state = lock(&self.state);
        if let Some(server) = &mut *state {
            server.watch(watchdog);
        }
        Ok(())
    }

    /// Notifies the watchdog that the interpreter is running Python code.
    fn beat(&self) {
        self.pulse.beat();
    }

    /// Serves requests until the server is stopped. With ``signals``, SIGINT and SIGTERM stop the
    /// server. Only the main thread may set ``signals``. Returns the number of aborted requests,
    /// and the number of threads that still run the application.
    fn run(&self, py: Python<'_>, signals: bool) -> PyResult<(usize, usize)> {
        let taken = lock(&self.state).take();
        let server = taken.ok_or_else(|| PyRuntimeError::new_err("a server runs once"))?;
        let handler = Wsgi::new(py, self.app.clone_ref(py), &self.place)?;
        let handle = self.handle.clone();
        let log = self.access_log.clone();
        let stopped = gil::detach(py, move || {
            let _guard = match signals {
                true => Some(onecopy_serve::stop_on_signals(
                    &handle,
                    &[libc::SIGINT, libc::SIGTERM],
                )?),
                false => None,
            };
            let _reopens = match (signals, &log) {
                (true, Some(_)) => Some(onecopy_serve::reopen_on_signal(libc::SIGUSR1)?),
                _ => None,
            };
            if let Some(log) = &log {
                log.start()?;
            }
            let stopped = server.run(handler);
            if let Some(log) = &log {
                log.close();
            }
            stopped.map_err(|e| io::Error::other(e.to_string()))
        })?;
        let Stopped { n_cut, n_left, .. } = stopped;
        let threads = std::mem::take(&mut *lock(&self.threads));
        if n_left == 0 {
            // All threads have left the server. `join` waits only for Python's thread function.
            for thread in threads {
                thread.call_method0(py, "join")?;
            }
        }
        Ok((n_cut, n_left))
    }

    /// Returns the listening file descriptor. Raises an error if the server is running or has
    /// ended.
    fn fileno(&self) -> PyResult<i32> {
        let state = lock(&self.state);
        let fd = state.as_ref().and_then(onecopy_serve::Server::listener_fd);
        fd.ok_or_else(|| PyRuntimeError::new_err("the server is already running, or has ended"))
    }

    /// Returns the counters of the server in the text format of Prometheus.
    fn metrics(&self, py: Python<'_>) -> String {
        gil::detach(py, || self.metrics.text())
    }

    /// Makes the access log reopen its file before the next line, for log rotation.
    fn reopen_access_log(&self) {
        if let Some(log) = &self.access_log {
            log.reopen();
        }
    }

    /// Stops the server. Idle connections close after ``idle_grace`` seconds. Active requests
    /// continue until their time limit. With ``now``, all connections close immediately and active
    /// requests are aborted.
    fn stop(&self, now: bool, idle_grace: f64) -> PyResult<()> {
        let idle_grace = seconds("idle_grace", idle_grace)?;
        match now {
            true => self.handle.cut(),
            false => self.handle.retire(idle_grace),
        }
        Ok(())
    }
}

/// Raises this process's limit of open files for ``n_connections`` connections. The hard limit is
/// the maximum.
#[pyfunction]
pub(crate) fn raise_open_files(n_connections: usize) -> PyResult<()> {
    onecopy_serve::raise_open_files(n_connections).map_err(|e| PyOSError::new_err(e.to_string()))
}

/// Starts a thread with Python's module `threading`. The thread calls `run` with the GIL released.
fn spawn(name: String, run: Box<dyn FnOnce() + Send + 'static>) -> io::Result<Py<PyAny>> {
    let run = Mutex::new(Some(run));
    gil::attach(|py| {
        let body = PyCFunction::new_closure(py, None, None, move |args, _| {
            let run = lock(&run).take();
            if let Some(run) = run {
                gil::detach(args.py(), run);
            }
        })?;
        let kwargs = PyDict::new(py);
        kwargs.set_item("target", body)?;
        kwargs.set_item("name", name)?;
        kwargs.set_item("daemon", true)?;
        let thread = py
            .import("threading")?
            .call_method("Thread", (), Some(&kwargs))?;
        thread.call_method0("start")?;
        Ok(thread.unbind())
    })
    .map_err(|e: PyErr| io::Error::other(e))
}
