//! `ServerState`: the state of a session as the server has reported it: parameters, transaction
//! status, cancel key, notices and notifications. It performs no I/O.

use std::collections::{HashMap, VecDeque};

use super::message::BackendMessage;
use crate::error;

/// The largest number of notices that are stored until they are read; older notices are dropped.
const MOST_NOTICES: usize = 1000;

/// The largest total size in bytes of the notices that are stored until they are read.
const MOST_NOTICE_BYTES: usize = 4 << 20;

/// The largest number of session parameters that are stored; servers report about 15.
const MOST_PARAMETERS: usize = 1000;

/// The largest size in bytes of a parameter's name or value that is stored.
const LONGEST_PARAMETER: usize = 64 << 10;

/// The largest total size in bytes of the notifications that are stored until they are read; older
/// notifications are dropped.
const MOST_NOTIFICATION_BYTES: usize = 16 << 20;

/// A message that another session sent with `NOTIFY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The name of the channel to which the message was sent.
    pub channel: String,
    /// The text that the sender passed to NOTIFY; empty if the sender passed none.
    pub payload: String,
    /// The process id of the sender's session.
    pub process_id: i32,
}

/// The transaction status of the session, as the last ReadyForQuery reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TransactionStatus {
    /// No transaction is open.
    #[default]
    Idle,
    /// A transaction is open.
    Open,
    /// A statement in the transaction has failed; the server accepts only the end of the
    /// transaction.
    Failed,
}

/// The state of a session, as the server has reported it in its messages.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    parameters: HashMap<String, String>,
    key: Option<(i32, i32)>,
    status: TransactionStatus,
    notices: VecDeque<error::Message>,
    notice_bytes: usize,
    notifications: VecDeque<Notification>,
    notification_bytes: usize,
    /// `true` after a statement has changed `client_encoding` from UTF-8 to another encoding.
    is_encoding_changed: bool,
}

/// Returns `true` if `name` is one of PostgreSQL's names for UTF-8.
fn is_utf8(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_uppercase()).collect();
    matches!(name.as_str(), "UTF8" | "UNICODE")
}

impl ServerState {
    /// Returns the value of a session parameter; `None` if the server has not reported it.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Returns the process id and the secret key for a CancelRequest; `None` if the server sent
    /// none.
    pub(super) fn key(&self) -> Option<(i32, i32)> {
        self.key
    }

    pub(super) fn status(&self) -> TransactionStatus {
        self.status
    }

    /// Returns the stored notifications, and removes them from the state.
    pub(super) fn take_notifications(&mut self) -> Vec<Notification> {
        self.notification_bytes = 0;
        self.notifications.drain(..).collect()
    }

    /// Returns `true` if the server expects and sends text in an encoding other than UTF-8, because
    /// a statement has changed `client_encoding`.
    pub(super) fn is_encoding_changed(&self) -> bool {
        self.is_encoding_changed
    }

    pub(super) fn has_notifications(&self) -> bool {
        !self.notifications.is_empty()
    }

    /// Returns the stored notices (warnings of the server), and removes them from the state.
    pub(super) fn take_notices(&mut self) -> Vec<error::Message> {
        self.notice_bytes = 0;
        self.notices.drain(..).collect()
    }

    /// Records a parameter report, a notice or a notification, which the server may send at any
    /// time. Returns `false` for any other message.
    pub(super) fn note_asynchronous(&mut self, message: &BackendMessage<'_>) -> bool {
        match message {
            BackendMessage::ParameterStatus { name, value } => {
                let is_new = !self.parameters.contains_key(name);
                if name == "client_encoding" {
                    // A server that never reports UTF-8 is believed to send it nevertheless.
                    let was_utf8 =
                        self.is_encoding_changed || self.parameter(name).is_some_and(is_utf8);
                    self.is_encoding_changed = was_utf8 && !is_utf8(value);
                }
                let fits = name.len() + value.len() <= LONGEST_PARAMETER;
                if fits && !(is_new && self.parameters.len() >= MOST_PARAMETERS) {
                    self.parameters.insert(name.clone(), value.clone());
                }
            }
            BackendMessage::NoticeResponse(fields) => {
                let notice = fields.to_message();
                self.notice_bytes += notice.text.len();
                self.notices.push_back(notice);
                while self.notices.len() > MOST_NOTICES || self.notice_bytes > MOST_NOTICE_BYTES {
                    let oldest = self.notices.pop_front();
                    self.notice_bytes -= oldest.map_or(self.notice_bytes, |m| m.text.len());
                }
            }
            BackendMessage::NotificationResponse {
                process_id,
                channel,
                payload,
            } => {
                let n_bytes = channel.len() + payload.len();
                self.notification_bytes += n_bytes;
                self.notifications.push_back(Notification {
                    channel: channel.clone(),
                    payload: payload.clone(),
                    process_id: *process_id,
                });
                while self.notification_bytes > MOST_NOTIFICATION_BYTES {
                    let oldest = self.notifications.pop_front();
                    let n_oldest = oldest.map_or(usize::MAX, |n| n.channel.len() + n.payload.len());
                    self.notification_bytes = self.notification_bytes.saturating_sub(n_oldest);
                }
            }
            _ => return false,
        }
        true
    }

    /// Records the transaction status or the cancel key, if the message contains one.
    pub(super) fn note(&mut self, message: &BackendMessage<'_>) {
        match message {
            BackendMessage::ReadyForQuery(b'I') => self.status = TransactionStatus::Idle,
            BackendMessage::ReadyForQuery(b'T') => self.status = TransactionStatus::Open,
            BackendMessage::ReadyForQuery(_) => self.status = TransactionStatus::Failed,
            BackendMessage::BackendKeyData {
                process_id,
                secret_key,
            } => {
                self.key = Some((*process_id, *secret_key));
            }
            _ => {
                self.note_asynchronous(message);
            }
        }
    }
}
