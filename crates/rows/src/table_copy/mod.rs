//! Copies the rows of Arrow batches into a table of another database. A value that would change
//! when its column stores it is an error.
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
