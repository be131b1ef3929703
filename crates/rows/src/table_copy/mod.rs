//! Copies the rows of Arrow batches into a table of another database. If a column cannot store a
//! value unchanged, the copy fails with an error.
//!
//! | module | contents |
//! |---|---|
//! | `target` | [`TargetTable`]: the table, its columns matched by name, the inserted rows |
//! | `storage` | `ColumnStorage`: the values that a column stores unchanged |
//! | `digits` | `DecimalDigits`: numbers in decimal notation, to compare and convert them |

mod digits;
mod storage;
mod target;

pub use target::{CopyError, TargetTable, exact_types};
