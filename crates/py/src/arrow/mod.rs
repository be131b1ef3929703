//! Reads and inserts Arrow batches and columns.
//!
//! | module | contents |
//! |---|---|
//! | `stream` | `ArrowStream`: a cursor's rows for any library that supports Arrow's C interface |
//! | `columns` | `Cursor.fetch_columns`: the row sink that builds columns |
//! | `insert` | columns and batches as rows of parameters |

mod columns;
mod insert;
mod stream;

pub(crate) use columns::{ColumnValues, PyColumns};
pub(crate) use insert::{ColumnRows, Destination};
pub(crate) use stream::{ArrowStream, options};
