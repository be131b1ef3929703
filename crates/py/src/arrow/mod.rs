//! Rows as Arrow's batches and as columns, and both as parameters.
//!
//! | module | what it holds |
//! |---|---|
//! | `stream` | `ArrowStream`: a cursor's rows for any library that knows Arrow's C interface |
//! | `columns` | `Cursor.fetch_columns`: the sink that makes columns |
//! | `insert` | columns and batches as rows of parameters |

mod columns;
mod insert;
mod stream;

pub(crate) use columns::PyColumns;
pub(crate) use insert::{ColumnRows, Into};
pub(crate) use stream::{ArrowStream, options};
