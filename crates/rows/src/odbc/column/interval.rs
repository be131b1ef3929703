//! `Interval`: the column kind (the bound buffer, and its conversion to a [`Cell`]) for durations,
//! such as PostgreSQL's `interval`. The driver writes durations to the buffer as text.

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::Cell;
use crate::interval;
use crate::schema::ColumnType;

/// A duration, bound as ASCII text of the form `[-]h:mm:ss[.ffffff]`, with days before it if it has
/// any (`-1 days +02:03:04`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval;

impl Interval {
    pub(crate) fn plan() -> ColumnBinding<Self> {
        (Interval, Spec::digits(64), ColumnType::Interval)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        interval::cell(raw.bytes())
    }
}
