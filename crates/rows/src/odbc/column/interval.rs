//! Spans of time, bound as text: PostgreSQL's `interval` and MariaDB's `time` beyond a day.

use super::spec::{Plan, Raw, Spec};
use crate::cell::Cell;
use crate::interval;
use crate::schema::ColumnType;

/// `[-]h:mm:ss[.ffffff]` with days before it (`-1 days +02:03:04`), in ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval;

impl Interval {
    pub(crate) fn plan() -> Plan<Self> {
        (Interval, Spec::digits(64), ColumnType::Interval)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        interval::cell(raw.bytes())
    }
}
