//! Opens a session: tries the hosts in order, with or without TLS, logs in, and checks that the
//! session is of the kind that `target_session_attrs` requires.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;

use super::buffer::Buffer;
use super::cancel::Activity;
use super::channel_binding::tls_server_end_point;
use super::dial::{Breaker, Endpoint, Reached, endpoints, open_socket};
use super::message::{BackendMessage, Framed, frame};
use super::server::ServerState;
use super::settings::{ChannelBinding, Host, SessionAttributes, Settings};
use super::socket::Socket;
use super::startup::{Login, Progress, Startup};
use super::tls_settings::{SslMode, TlsSettings};
use super::wire::Wire;
use crate::error::{Error, ErrorKind};

/// Opens a session on the first server that accepts the login and whose session has the required
/// kind.
///
/// `connect_timeout` limits the time for each host, `timeout` the time for all hosts. Without
/// `connect_timeout`, the remaining hosts share the remaining time, so that a host that does not
/// respond cannot use all of the time.
///
/// # Errors
/// The errors of all servers that were tried; [`ErrorKind::Timeout`] after the time limit.
pub(super) fn open(
    settings: &Settings,
    read_only: bool,
    breaker: &Arc<Breaker>,
) -> Result<Wire, Error> {
    let deadline = Instant::now() + settings.timeout;
    let mut hosts: Vec<&Host> = settings.hosts.iter().collect();
    if settings.balances {
        shuffle(&mut hosts);
    }
    // With `prefer-standby`, the hosts are tried a second time, without this requirement, if none
    // of them is a standby.
    let rounds: &[SessionAttributes] = match settings.session {
        SessionAttributes::PreferStandby => &[SessionAttributes::Standby, SessionAttributes::Any],
        ref other => std::slice::from_ref(other),
    };
    let mut failures = Vec::new();
    for wanted in rounds {
        failures.clear();
        for (i, host) in hosts.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let n_left = u32::try_from(hosts.len() - i).unwrap_or(u32::MAX);
            let limit = settings.connect_timeout.unwrap_or(left / n_left).min(left);
            let attempt = Attempt {
                settings,
                host,
                wanted: *wanted,
                read_only,
                deadline: Instant::now() + limit,
                breaker,
            };
            match attempt.open_host() {
                Ok(wire) => return Ok(wire),
                Err(error) => failures.push(error),
            }
            if breaker.is_broken() {
                return Err(Error::new(
                    ErrorKind::Cancelled,
                    "the connect was cancelled",
                ));
            }
        }
    }
    Err(joined(failures))
}

/// Returns one error for several failed attempts: the last error, with the messages of all errors,
/// one per line.
fn joined(failures: Vec<Error>) -> Error {
    let messages: Vec<&str> = failures.iter().map(|e| e.message.as_str()).collect();
    let message = messages.join("\n");
    let last = failures.into_iter().next_back();
    let mut error = last.unwrap_or_else(|| Error::new(ErrorKind::Connect, "no server was found"));
    if !message.is_empty() {
        error.message = message;
    }
    error
}

fn shuffle<T>(items: &mut [T]) {
    static SEED: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64);
    let mut state = now ^ SEED.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed) | 1;
    for i in (1..items.len()).rev() {
        // The xorshift algorithm generates the random numbers.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

/// Returns the TLS modes to try, in order. As in libpq, `allow` first tries a connection without
/// TLS, and `prefer` first tries one with TLS.
fn modes(mode: SslMode) -> &'static [SslMode] {
    match mode {
        SslMode::Disable => &[SslMode::Disable],
        SslMode::Allow => &[SslMode::Disable, SslMode::Require],
        SslMode::Prefer => &[SslMode::Prefer, SslMode::Disable],
        SslMode::Require => &[SslMode::Require],
        SslMode::VerifyCa => &[SslMode::VerifyCa],
        SslMode::VerifyFull => &[SslMode::VerifyFull],
    }
}

/// An attempt to open a session on one host: the host, the settings and the time limit.
struct Attempt<'a> {
    settings: &'a Settings,
    host: &'a Host,
    wanted: SessionAttributes,
    read_only: bool,
    deadline: Instant,
    breaker: &'a Arc<Breaker>,
}

impl Attempt<'_> {
    /// Opens a session on the first address of the host that accepts the login.
    fn open_host(&self) -> Result<Wire, Error> {
        let mut found = endpoints(&self.host.address, self.deadline)?;
        if self.settings.balances {
            shuffle(&mut found);
        }
        let mut failures = Vec::new();
        for endpoint in &found {
            match self.open_endpoint(endpoint) {
                Ok(wire) => return Ok(wire),
                Err(error) => failures.push(error),
            }
            if self.breaker.is_broken() {
                break;
            }
        }
        Err(joined(failures))
    }

    fn open_endpoint(&self, endpoint: &Endpoint) -> Result<Wire, Error> {
        let mut failure = None;
        for mode in modes(self.settings.tls.mode) {
            match self.log_in(endpoint, *mode) {
                Ok(mut wire) => {
                    check_session(&mut wire, self.wanted)?;
                    wire.socket.set_deadline(None);
                    return Ok(wire);
                }
                // An attempt with the next TLS mode is useful only if the server refused a
                // connection with or without TLS (28000), or if the error has no SQLSTATE, such as
                // a failed TLS handshake. It is useless after a wrong password.
                Err(error) if error.sqlstate == "28000" || error.sqlstate.is_empty() => {
                    failure.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or_else(|| Error::new(ErrorKind::Connect, "no way to connect")))
    }

    fn log_in(&self, endpoint: &Endpoint, mode: SslMode) -> Result<Wire, Error> {
        let Attempt {
            settings,
            host,
            breaker,
            ..
        } = *self;
        let mut socket = open_socket(settings, host, endpoint, mode, self.deadline, breaker)?;
        let channel_binding = socket.tls().and_then(tls_server_end_point);
        let requires_binding = settings.channel_binding == ChannelBinding::Require;
        if requires_binding && channel_binding.is_none() {
            let message =
                "`channel_binding=require` needs TLS and a certificate that can be bound to";
            return Err(Error::new(ErrorKind::Connect, message));
        }
        let login = Login {
            user: settings.user.clone(),
            password: host.password.clone(),
            password_hint: settings.password_hint.clone(),
            parameters: session_parameters(settings, self.read_only),
            channel_binding: channel_binding
                .filter(|_| settings.channel_binding != ChannelBinding::Disable),
            requires_binding,
            accepted: settings.accepted.clone(),
        };
        let reached = Reached {
            endpoint: endpoint.clone(),
            host_name: host.name.clone(),
            tls: socket.tls().map(|_| TlsSettings {
                mode,
                ..settings.tls.clone()
            }),
        };
        let (server, inbox) = start_session(&mut socket, login, breaker)?;
        let activity = Arc::new(Activity::new(reached, server.key(), Arc::clone(breaker)));
        Ok(Wire::new(socket, inbox, server, activity))
    }
}

/// Logs in, and reads messages up to the first ReadyForQuery. Returns the state of the server that
/// these messages report, and the buffer for received bytes.
fn start_session(
    socket: &mut Socket,
    login: Login,
    breaker: &Breaker,
) -> Result<(ServerState, Buffer), Error> {
    let (mut out, mut inbox, mut server) =
        (BytesMut::new(), Buffer::new()?, ServerState::default());
    let mut startup = Startup::begin(login, &mut out)?;
    let failed = |error: std::io::Error| match (error.kind(), breaker.is_broken()) {
        (_, true) => Error::new(ErrorKind::Cancelled, "the connect was cancelled"),
        (std::io::ErrorKind::TimedOut, _) => {
            let message = "the server did not answer the login within the time to connect";
            let mut error = Error::new(ErrorKind::Timeout, message).transient();
            "08001".clone_into(&mut error.sqlstate);
            error
        }
        _ => {
            let message = format!("the connection was lost during the login: {error}");
            let mut error = Error::new(ErrorKind::Connect, message).transient();
            "08001".clone_into(&mut error.sqlstate);
            error
        }
    };
    loop {
        if !out.is_empty() {
            socket.write_all(&out, &mut inbox).map_err(failed)?;
            out.clear();
        }
        if let Framed::Complete(frame) = frame(inbox.bytes())? {
            let message = BackendMessage::read(frame, inbox.bytes())?;
            let progress = startup.take(&message, &mut server, &mut out)?;
            inbox.consume(frame.len);
            if progress == Progress::Ready {
                break;
            }
            continue;
        }
        match socket.read(inbox.free()?).map_err(failed)? {
            0 => return Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
            n => inbox.received(n),
        }
    }
    Ok((server, inbox))
}

fn session_parameters(settings: &Settings, read_only: bool) -> Vec<(String, String)> {
    let of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut parameters = vec![
        of("database", &settings.database),
        of("client_encoding", "UTF8"),
        of("DateStyle", "ISO"),
    ];
    if !settings.application_name.is_empty() {
        parameters.push(of("application_name", &settings.application_name));
    }
    let mut options = settings.options.clone().unwrap_or_default();
    if read_only {
        options.push_str(" -c default_transaction_read_only=on");
    }
    if !options.is_empty() {
        parameters.push(of("options", &options));
    }
    parameters
}

/// Returns an error if the session is not of the kind `wanted` (the keyword
/// `target_session_attrs`).
fn check_session(wire: &mut Wire, wanted: SessionAttributes) -> Result<(), Error> {
    let mut is_on = |parameter: &str, query: &str| -> Result<bool, Error> {
        // Servers from version 14 on report this parameter at the start of a session.
        if let Some(value) = wire.server.parameter(parameter) {
            return Ok(value == "on");
        }
        let value = wire.value(query)?;
        Ok(matches!(value.as_deref(), Some("on" | "t")))
    };
    let mut standby = || is_on("in_hot_standby", "select pg_catalog.pg_is_in_recovery()");
    let is_right = match wanted {
        SessionAttributes::Any | SessionAttributes::PreferStandby => true,
        SessionAttributes::Primary => !standby()?,
        SessionAttributes::Standby => standby()?,
        SessionAttributes::ReadWrite | SessionAttributes::ReadOnly => {
            let is_standby = standby()?;
            let is_read_only = is_standby
                || is_on(
                    "default_transaction_read_only",
                    "show default_transaction_read_only",
                )?;
            is_read_only == (wanted == SessionAttributes::ReadOnly)
        }
    };
    match is_right {
        true => Ok(()),
        false => {
            let message = "the server's session is not of the kind that `target_session_attrs` has";
            Err(Error::new(ErrorKind::Connect, message))
        }
    }
}
