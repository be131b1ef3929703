//! Rows of a database as Arrow columns (`ArrowStream`), and Arrow columns as rows of parameters
//! (`BatchRows`).
//!
//! | module | contents |
//! |---|---|
//! | [`types`] | [`DataType`], its formats and names; [`Field`] |
//! | [`array`](mod@array) | [`Array`] and [`Batch`]: columns in memory |
//! | `plan` | chooses the Arrow type of a database column |
//! | `rows` | [`ArrowRows`]: the row sink |
//! | `builder` | one column under construction |
//! | `lists` | list columns from the arrays of a database |
//! | `type_from_values` | chooses a column's type from its values |
//! | `text` | columns of text or bytes under construction |
//! | [`number_column`] | [`NumberColumn`]: a column of numbers as a plain vector |
//! | `bits` | bitmaps under construction: booleans, validity |
//! | `decimal` | converts digits to integers of 128 and 256 bits, and back |
//! | `date_time` | converts dates and times to integers, and back |
//! | `stream` | [`ArrowStream`]: a statement's rows as batches |
//! | `read` | reads the values of arrays as parameters |
//!
//! This module uses no `unsafe`: [`crate::arrow_c`] exports and imports the memory.

pub mod array;
mod bits;
mod builder;
mod date_time;
mod decimal;
mod error;
mod lists;
pub mod number_column;
mod plan;
mod read;
mod rows;
mod stream;
mod text;
mod type_from_values;
pub mod types;

pub use array::{Array, Batch};
pub(crate) use date_time::{parse_date, parse_time, parse_timestamp};
pub use number_column::{NumberColumn, NumberMisfit, Numbers};
pub use plan::{ArrowOptions, has_fractions, type_of};
pub use read::BatchRows;
pub use rows::{ArrowRows, Misfit};
pub use stream::ArrowStream;
pub use types::{DataType, Field, TimeUnit};
