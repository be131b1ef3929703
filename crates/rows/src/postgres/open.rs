//! Opens a session: the hosts in their order, TLS or not, the login, and whether the session is of
//! the kind that is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;

use super::binding::tls_server_end_point;
use super::buffer::Buffer;
use super::cancel::Activity;
use super::dial::{Breaker, Endpoint, Reached, endpoints, open_socket};
use super::message::{Framed, Message, frame};
use super::server::ServerState;
use super::settings::{ChannelBinding, Host, SessionAttributes, Settings, SslMode, TlsSettings};
use super::startup::{Login, Progress, Startup};
use super::wire::Wire;
use crate::error::{Error, ErrorKind};

/// Opens a session with the first server that has one.
///
/// # Errors
/// That of the last server that was tried; [`ErrorKind::Timeout`] after the time limit.
pub(super) fn open(
    settings: &Settings,
    read_only: bool,
    breaker: &Arc<Breaker>,
) -> Result<Wire, Error> {
    let deadline = Instant::now() + settings.connect_timeout;
    let mut hosts: Vec<&Host> = settings.hosts.iter().collect();
    if settings.balances {
        shuffle(&mut hosts);
    }
    // Of `prefer-standby`, any server is right where no standby is.
    let rounds: &[SessionAttributes] = match settings.session {
        SessionAttributes::PreferStandby => &[SessionAttributes::Standby, SessionAttributes::Any],
        ref other => std::slice::from_ref(other),
    };
    let mut failure = None;
    for wanted in rounds {
        for host in &hosts {
            let found = endpoints(&host.address, deadline);
            let attempts = found.map(|found| {
                let attempt = |endpoint| {
                    open_one(
                        settings, host, endpoint, *wanted, read_only, deadline, breaker,
                    )
                };
                found
                    .iter()
                    .map(attempt)
                    .find(Result::is_ok)
                    .or_else(|| Some(attempt(found.last()?)))
            });
            match attempts {
                Ok(Some(Ok(wire))) => return Ok(wire),
                Ok(Some(Err(error))) | Err(error) => failure = Some(error),
                Ok(None) => {}
            }
            if breaker.is_broken() {
                return Err(Error::new(
                    ErrorKind::Cancelled,
                    "the connect was cancelled",
                ));
            }
        }
    }
    Err(failure.unwrap_or_else(|| Error::new(ErrorKind::Connect, "no server was found")))
}

fn shuffle(hosts: &mut [&Host]) {
    static SEED: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64);
    let mut state = now ^ SEED.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed) | 1;
    for i in (1..hosts.len()).rev() {
        // Xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        hosts.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

/// The ways to try: libpq's `allow` begins without TLS, `prefer` with it.
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

fn open_one(
    settings: &Settings,
    host: &Host,
    endpoint: &Endpoint,
    wanted: SessionAttributes,
    read_only: bool,
    deadline: Instant,
    breaker: &Arc<Breaker>,
) -> Result<Wire, Error> {
    let modes = modes(settings.tls.mode);
    let mut failure = None;
    for mode in modes {
        let opened = log_in(
            settings, host, endpoint, *mode, read_only, deadline, breaker,
        );
        match opened {
            Ok(mut wire) => {
                check_session(&mut wire, wanted)?;
                wire.socket.clear_deadline();
                return Ok(wire);
            }
            // Only a refusal of the way, not of the password, makes another way worth trying.
            Err(error) if error.sqlstate == "28000" || error.sqlstate.is_empty() => {
                failure.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::new(ErrorKind::Connect, "no way to connect")))
}

fn log_in(
    settings: &Settings,
    host: &Host,
    endpoint: &Endpoint,
    mode: SslMode,
    read_only: bool,
    deadline: Instant,
    breaker: &Arc<Breaker>,
) -> Result<Wire, Error> {
    let mut socket = open_socket(settings, host, endpoint, mode, deadline, breaker)?;
    let channel_binding = socket.tls().and_then(tls_server_end_point);
    let is_bound = channel_binding.is_some();
    if settings.channel_binding == ChannelBinding::Require && !is_bound {
        let message = "`channel_binding=require` needs TLS and a certificate that can be bound to";
        return Err(Error::new(ErrorKind::Connect, message));
    }
    let login = Login {
        user: settings.user.clone(),
        password: host.password.clone(),
        parameters: session_parameters(settings, read_only),
        channel_binding: channel_binding
            .filter(|_| settings.channel_binding != ChannelBinding::Disable),
        requires_binding: settings.channel_binding == ChannelBinding::Require,
        is_encrypted: socket.tls().is_some(),
    };
    let reached = Reached {
        endpoint: endpoint.clone(),
        host_name: host.name.clone(),
        tls: login.is_encrypted.then(|| TlsSettings {
            mode,
            ..settings.tls.clone()
        }),
    };
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
            let message = Message::read(frame, inbox.bytes())?;
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
    let activity = Arc::new(Activity::new(reached, server.key(), Arc::clone(breaker)));
    Ok(Wire::new(socket, inbox, server, activity))
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
        parameters.push(of("options", options.trim()));
    }
    parameters
}

/// Refuses a session of another kind than `target_session_attrs` has.
fn check_session(wire: &mut Wire, wanted: SessionAttributes) -> Result<(), Error> {
    let mut is_on = |parameter: &str, query: &str| -> Result<bool, Error> {
        // Servers from 14 on report it.
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
