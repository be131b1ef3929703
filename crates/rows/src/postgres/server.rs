//! The state of a session as the server has reported it: parameters, the transaction's status, its
//! key for cancelling, notices and notifications. Without I/O.

use std::collections::HashMap;

use super::message::Message;
use crate::error;

/// Notices that are kept until they are read; of more the oldest ones go.
const MOST_NOTICES: usize = 1000;

/// The status of the session's transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TransactionStatus {
    /// No transaction is open.
    #[default]
    Idle,
    /// A transaction is open.
    Open,
    /// A statement failed in the transaction: only its end is accepted.
    Failed,
}

/// A session's state as the server has reported it.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    parameters: HashMap<String, String>,
    key: Option<(i32, i32)>,
    status: TransactionStatus,
    notices: Vec<error::Message>,
}

impl ServerState {
    /// The value of a parameter that the server reports.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Process id and secret key, to cancel by.
    pub(super) fn key(&self) -> Option<(i32, i32)> {
        self.key
    }

    pub(super) fn status(&self) -> TransactionStatus {
        self.status
    }

    /// The notices since the last call.
    pub(super) fn take_notices(&mut self) -> Vec<error::Message> {
        std::mem::take(&mut self.notices)
    }

    /// Notes a message that may come at any time; whether it was one.
    pub(super) fn note_asynchronous(&mut self, message: &Message<'_>) -> bool {
        match message {
            Message::ParameterStatus { name, value } => {
                self.parameters.insert(name.clone(), value.clone());
            }
            Message::NoticeResponse(fields) => {
                if self.notices.len() >= MOST_NOTICES {
                    self.notices.remove(0);
                }
                self.notices.push(fields.to_message());
            }
            Message::NotificationResponse { .. } => {}
            _ => return false,
        }
        true
    }

    /// Notes what a message reports of the session.
    pub(super) fn note(&mut self, message: &Message<'_>) {
        match message {
            Message::ReadyForQuery(b'I') => self.status = TransactionStatus::Idle,
            Message::ReadyForQuery(b'T') => self.status = TransactionStatus::Open,
            Message::ReadyForQuery(_) => self.status = TransactionStatus::Failed,
            Message::BackendKeyData {
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
