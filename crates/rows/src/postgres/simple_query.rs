//! Executes commands, and queries that return a single value, in the simple query protocol.

use postgres_protocol::message::frontend;

use super::delivery::Completion;
use super::message::violation;
use super::wire::{Event, Wire};
use crate::error::Error;

impl Wire {
    /// Executes a command that has no parameters and returns no rows.
    pub(super) fn command(&mut self, sql: &str) -> Result<Completion, Error> {
        frontend::query(sql, &mut self.out).map_err(|e| violation(e.to_string()))?;
        self.send()?;
        let completion = self.read_answer(sql)?;
        self.completed(completion)
    }

    /// Executes a query in the simple query protocol; returns the first value of its result as
    /// text.
    pub(super) fn value(&mut self, sql: &str) -> Result<Option<String>, Error> {
        frontend::query(sql, &mut self.out).map_err(|e| violation(e.to_string()))?;
        self.send()?;
        self.read_value(sql)
    }

    /// Reads the response to the query of [`Wire::value`].
    pub(super) fn read_value(&mut self, sql: &str) -> Result<Option<String>, Error> {
        let mut value = None;
        loop {
            match self.event()? {
                Event::Row => {
                    let frame = self.next_frame()?;
                    // The value follows two bytes for the number of columns and four for its
                    // length.
                    let body = frame.body(self.inbox.bytes()).get(6..);
                    value = body.map(|text| String::from_utf8_lossy(text).into_owned());
                    self.inbox.consume(frame.len);
                }
                Event::Failed(fields) => {
                    let error = fields.to_error(sql);
                    return self.read_to_ready(sql).and(Err(error));
                }
                Event::Ready => return Ok(value),
                _ => {}
            }
        }
    }
}
