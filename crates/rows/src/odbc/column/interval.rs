//! `Interval`: the column kind (the bound buffer, and its conversion to a [`Cell`]) for durations,
//! such as PostgreSQL's `interval`. The driver writes durations to the buffer as text.

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::Cell;
use crate::interval;
use crate::schema::ColumnType;

/// The kind of a column of durations. A value is bound as ASCII text of the form
/// `[-]h:mm:ss[.ffffff]`. If the duration has days, the text begins with them
/// (`-1 days +02:03:04`).
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
