//! `Startup`: the state machine of the login. It covers the startup message, the authentication,
//! and the server's reports up to ReadyForQuery. It performs no I/O: it receives parsed messages of
//! the server, and returns the bytes to send.

use bytes::BytesMut;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;

use super::auth_methods::{Method, Methods};
use super::message::{Authentication, BackendMessage, violation};
use super::server::ServerState;
use crate::error::{Error, ErrorKind};

const SCRAM: &[u8] = b"SCRAM-SHA-256";
const SCRAM_PLUS: &[u8] = b"SCRAM-SHA-256-PLUS";

/// The user, password and parameters of a login. It does not implement `Debug`, because it contains
/// the password.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: Option<Vec<u8>>,
    /// The reason why the password file was ignored, which is added to the message of a login
    /// error. Empty if the file was not ignored.
    pub(super) password_hint: String,
    /// The parameters of the startup message other than the user: `database`, `application_name`
    /// and session settings.
    pub(super) parameters: Vec<(String, String)>,
    /// The `tls-server-end-point` hash of the server's certificate (RFC 5929); `None` without TLS.
    pub(super) channel_binding: Option<Vec<u8>>,
    /// `true` to refuse a login without channel binding.
    pub(super) requires_binding: bool,
    /// The authentication methods that `require_auth` accepts.
    pub(super) accepted: Methods,
}

/// The stage that the authentication has reached.
enum Stage {
    /// The startup message was sent; the server's first message is expected.
    Started,
    /// A SCRAM message was sent; the server's next SCRAM message is expected.
    Scram(Box<sasl::ScramSha256>),
    /// The server has proved that it stores the SCRAM verifier of the user's password.
    ScramVerified,
    /// The password was sent, in clear text or as an MD5 hash.
    PasswordSent,
    /// The server has accepted the login, and now reports its parameters.
    Accepted,
}

/// The state of a login, until the session is ready for statements.
pub(super) struct Startup {
    login: Login,
    stage: Stage,
}

/// The state of the login after a message was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The login is not complete. The caller must send the bytes in `out`, and then read the
    /// server's next message.
    Continue,
    /// The session is ready for statements.
    Ready,
}

impl Startup {
    /// Begins the login: writes the startup message to `out`.
    ///
    /// # Errors
    /// A parameter contains NUL.
    pub(super) fn begin(login: Login, out: &mut BytesMut) -> Result<Startup, Error> {
        let user = [("user", login.user.as_str())];
        let others = login
            .parameters
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()));
        frontend::startup_message(user.into_iter().chain(others), out)
            .map_err(|_| refused("a setting of the connection contains a NUL character"))?;
        Ok(Startup {
            login,
            stage: Stage::Started,
        })
    }

    /// Handles a message of the server; writes the response, if any, to `out`.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] if the server refuses the login, or requests an authentication method
    /// that is not supported; a protocol violation for an unexpected message.
    pub(super) fn take(
        &mut self,
        message: &BackendMessage<'_>,
        server: &mut ServerState,
        out: &mut BytesMut,
    ) -> Result<Progress, Error> {
        match message {
            BackendMessage::Authentication(request) => self.authenticate(request, out)?,
            BackendMessage::ErrorResponse(fields) => return Err(login_error(fields.to_error(""))),
            BackendMessage::NegotiateProtocolVersion => {}
            BackendMessage::ReadyForQuery(_) if matches!(self.stage, Stage::Accepted) => {
                server.note(message);
                return Ok(Progress::Ready);
            }
            BackendMessage::BackendKeyData { .. } if matches!(self.stage, Stage::Accepted) => {
                server.note(message);
            }
            _ if server.note_asynchronous(message) => {}
            _ => return Err(violation("a message arrived before the session was ready")),
        }
        Ok(Progress::Continue)
    }

    fn authenticate(
        &mut self,
        request: &Authentication<'_>,
        out: &mut BytesMut,
    ) -> Result<(), Error> {
        self.check_method(request)?;
        let stage = std::mem::replace(&mut self.stage, Stage::Accepted);
        self.stage = match (request, stage) {
            // A server that does not prove that it stores the user's SCRAM verifier may be an
            // impostor.
            (Authentication::Ok, Stage::Scram(_)) => {
                return Err(violation(
                    "the login was accepted before SCRAM was complete",
                ));
            }
            (Authentication::Ok, Stage::Accepted) => return Err(out_of_order()),
            (Authentication::Ok, _) => Stage::Accepted,
            (Authentication::CleartextPassword, Stage::Started) => {
                frontend::password_message(self.password()?, out).map_err(password_has_nul)?;
                Stage::PasswordSent
            }
            (Authentication::Md5Password(salt), Stage::Started) => {
                let hash = md5_hash(self.login.user.as_bytes(), self.password()?, *salt);
                frontend::password_message(hash.as_bytes(), out).map_err(password_has_nul)?;
                Stage::PasswordSent
            }
            (Authentication::Sasl(mechanisms), Stage::Started) => {
                Stage::Scram(Box::new(self.begin_scram(mechanisms, out)?))
            }
            (Authentication::SaslContinue(data), Stage::Scram(mut scram)) => {
                scram.update(data).map_err(|e| scram_error(&e))?;
                frontend::sasl_response(scram.message(), out).map_err(|e| scram_error(&e))?;
                Stage::Scram(scram)
            }
            (Authentication::SaslFinal(data), Stage::Scram(mut scram)) => {
                scram.finish(data).map_err(|e| scram_error(&e))?;
                Stage::ScramVerified
            }
            (Authentication::Other(method), _) => return Err(unsupported(*method)),
            _ => return Err(out_of_order()),
        };
        Ok(())
    }

    /// Returns an error if the server requests an authentication method that `require_auth` or
    /// `channel_binding` excludes. It is called before a password is sent.
    fn check_method(&self, request: &Authentication<'_>) -> Result<(), Error> {
        let method = match request {
            Authentication::Ok if matches!(self.stage, Stage::Started) => Method::None,
            Authentication::CleartextPassword => Method::Password,
            Authentication::Md5Password(_) => Method::Md5,
            Authentication::Sasl(_) => Method::Scram,
            _ => return Ok(()),
        };
        if self.login.requires_binding && method != Method::Scram {
            return Err(refused(
                "`channel_binding=require` needs SCRAM-SHA-256-PLUS, which the server does not use for this login",
            ));
        }
        if !self.login.accepted.contains(method) {
            return Err(refused(&format!(
                "the server uses the authentication method `{}`, which `require_auth` excludes",
                method.name()
            )));
        }
        Ok(())
    }

    fn begin_scram(
        &self,
        mechanisms: &[&[u8]],
        out: &mut BytesMut,
    ) -> Result<sasl::ScramSha256, Error> {
        let password = self.password()?;
        let has = |name: &[u8]| mechanisms.contains(&name);
        let (name, binding) = match &self.login.channel_binding {
            Some(hash) if has(SCRAM_PLUS) => (
                SCRAM_PLUS,
                sasl::ChannelBinding::tls_server_end_point(hash.clone()),
            ),
            _ if self.login.requires_binding => {
                return Err(refused(
                    "the server does not offer channel binding, which is required",
                ));
            }
            // `unrequested` reports to the server that the client supports channel binding. The
            // login then fails if an attacker has removed SCRAM-SHA-256-PLUS from the list.
            Some(_) if has(SCRAM) => (SCRAM, sasl::ChannelBinding::unrequested()),
            None if has(SCRAM) => (SCRAM, sasl::ChannelBinding::unsupported()),
            _ => {
                return Err(refused(
                    "the server has no SASL mechanism that is supported: SCRAM-SHA-256 is",
                ));
            }
        };
        let scram = sasl::ScramSha256::new(password, binding);
        let name = std::str::from_utf8(name).unwrap_or_default();
        frontend::sasl_initial_response(name, scram.message(), out).map_err(|e| scram_error(&e))?;
        Ok(scram)
    }

    fn password(&self) -> Result<&[u8], Error> {
        let password = self.login.password.as_deref();
        password.ok_or_else(|| {
            let mut error = refused(&format!(
                "the server requires a password, and none was given\n\
                 Add it to the URL, set PGPASSWORD, or write it into ~/.pgpass.{}",
                self.login.password_hint
            ));
            "28P01".clone_into(&mut error.sqlstate);
            error
        })
    }
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Connect, message)
}

/// Converts an error that the server sent during the login to an error of kind `Connect`.
fn login_error(mut error: Error) -> Error {
    error.kind = ErrorKind::Connect;
    error
}

fn password_has_nul(_: std::io::Error) -> Error {
    refused("the password contains a NUL character")
}

fn scram_error(error: &std::io::Error) -> Error {
    refused(&format!("the SCRAM authentication failed: {error}"))
}

fn out_of_order() -> Error {
    violation("a request for authentication arrived at the wrong time")
}

fn unsupported(method: i32) -> Error {
    let name = match method {
        2 => "Kerberos V5",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        _ => "an unknown method",
    };
    refused(&format!(
        "the server requires authentication by {name} ({method}), which is not supported\n\
         Use SCRAM-SHA-256, md5, a password or trust in pg_hba.conf, or a driver by `Driver=…`."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(password: Option<&[u8]>) -> Login {
        Login {
            user: "bob".to_owned(),
            password: password.map(<[u8]>::to_vec),
            parameters: vec![("database".to_owned(), "db".to_owned())],
            ..Login::default()
        }
    }

    fn started(password: Option<&[u8]>) -> (Startup, ServerState, BytesMut) {
        let mut out = BytesMut::new();
        let startup = Startup::begin(login(password), &mut out).unwrap();
        out.clear();
        (startup, ServerState::default(), out)
    }

    #[test]
    fn the_startup_message_has_version_and_parameters() {
        let mut out = BytesMut::new();
        Startup::begin(login(None), &mut out).unwrap();
        assert_eq!(&out[..], b"\0\0\0\x1e\0\x03\0\0user\0bob\0database\0db\0\0");
        let nul = Login {
            user: "a\0b".to_owned(),
            ..Login::default()
        };
        assert!(Startup::begin(nul, &mut out).is_err());
    }

    #[test]
    fn trust_needs_no_password_and_reports_the_servers_parameters() {
        let (mut startup, mut server, mut out) = started(None);
        let status = BackendMessage::ParameterStatus {
            name: "TimeZone".to_owned(),
            value: "UTC".to_owned(),
        };
        for message in [
            BackendMessage::Authentication(Authentication::Ok),
            status,
            BackendMessage::BackendKeyData {
                process_id: 1,
                secret_key: 2,
            },
        ] {
            let progress = startup.take(&message, &mut server, &mut out).unwrap();
            assert_eq!(progress, Progress::Continue);
        }
        let ready = BackendMessage::ReadyForQuery(b'I');
        assert_eq!(
            startup.take(&ready, &mut server, &mut out).unwrap(),
            Progress::Ready
        );
        assert_eq!(server.parameter("TimeZone"), Some("UTC"));
        assert_eq!(server.key(), Some((1, 2)));
        assert!(out.is_empty());
    }

    #[test]
    fn passwords_are_sent_in_the_form_that_the_server_requests() {
        let (mut startup, mut server, mut out) = started(Some(b"secret"));
        let request = BackendMessage::Authentication(Authentication::CleartextPassword);
        startup.take(&request, &mut server, &mut out).unwrap();
        assert_eq!(&out[..], b"p\0\0\0\x0bsecret\0");

        let (mut startup, mut server, mut out) = started(Some(b"secret"));
        let request = BackendMessage::Authentication(Authentication::Md5Password([1, 2, 3, 4]));
        startup.take(&request, &mut server, &mut out).unwrap();
        assert_eq!(out.len(), 1 + 4 + 3 + 32 + 1);
        assert!(out[5..].starts_with(b"md5"));
    }

    #[test]
    fn a_password_that_is_missing_is_a_connect_error_with_the_remedy() {
        for request in [
            Authentication::CleartextPassword,
            Authentication::Md5Password([0; 4]),
            Authentication::Sasl(vec![SCRAM]),
        ] {
            let (mut startup, mut server, mut out) = started(None);
            let message = BackendMessage::Authentication(request);
            let error = startup.take(&message, &mut server, &mut out).unwrap_err();
            assert_eq!(
                (error.kind, error.sqlstate.as_str()),
                (ErrorKind::Connect, "28P01")
            );
            assert!(error.message.contains("PGPASSWORD"));
        }
    }

    #[test]
    fn scram_begins_with_the_mechanism_and_a_nonce() {
        let (mut startup, mut server, mut out) = started(Some(b"secret"));
        let request = BackendMessage::Authentication(Authentication::Sasl(vec![SCRAM_PLUS, SCRAM]));
        startup.take(&request, &mut server, &mut out).unwrap();
        assert!(out[5..].starts_with(b"SCRAM-SHA-256\0"));
        // The server accepts the login without its SCRAM proof.
        let accepted = BackendMessage::Authentication(Authentication::Ok);
        assert!(startup.take(&accepted, &mut server, &mut out).is_err());
    }

    #[test]
    fn a_login_that_requires_channel_binding_sends_no_password_without_it() {
        for request in [
            Authentication::CleartextPassword,
            Authentication::Md5Password([0; 4]),
            Authentication::Ok,
            Authentication::Sasl(vec![SCRAM]),
        ] {
            let mut out = BytesMut::new();
            let required = Login {
                requires_binding: true,
                channel_binding: Some(vec![1; 32]),
                ..login(Some(b"secret"))
            };
            let mut startup = Startup::begin(required, &mut out).unwrap();
            out.clear();
            let message = BackendMessage::Authentication(request);
            let error = startup.take(&message, &mut ServerState::default(), &mut out);
            assert_eq!(error.unwrap_err().kind, ErrorKind::Connect);
            assert!(out.is_empty());
        }
    }

    #[test]
    fn a_method_that_require_auth_excludes_is_refused_before_the_password_is_sent() {
        let mut out = BytesMut::new();
        let required = Login {
            accepted: Methods::parse("scram-sha-256").unwrap(),
            ..login(Some(b"secret"))
        };
        let mut startup = Startup::begin(required, &mut out).unwrap();
        out.clear();
        let message = BackendMessage::Authentication(Authentication::CleartextPassword);
        let error = startup.take(&message, &mut ServerState::default(), &mut out);
        assert!(error.unwrap_err().message.contains("`password`") && out.is_empty());
    }

    #[test]
    fn messages_at_the_wrong_time_are_violations() {
        let row = BackendMessage::DataRow(b"");
        let ready = BackendMessage::ReadyForQuery(b'I');
        let final_message = BackendMessage::Authentication(Authentication::SaslFinal(b"v=1"));
        for message in [row, ready, final_message] {
            let (mut startup, mut server, mut out) = started(Some(b"secret"));
            let error = startup.take(&message, &mut server, &mut out).unwrap_err();
            assert_eq!(error.sqlstate, "08P01", "{message:?}");
        }
    }

    #[test]
    fn methods_that_are_not_supported_are_named() {
        let (mut startup, mut server, mut out) = started(None);
        let message = BackendMessage::Authentication(Authentication::Other(7));
        let error = startup.take(&message, &mut server, &mut out).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(error.message.contains("GSSAPI"));
    }
}
