//! Rows as Arrow's columns, and Arrow's columns as rows of parameters.
//!
//! | module | what it holds |
//! |---|---|
//! | [`types`] | [`DataType`], its formats and names; [`Field`] |
//! | [`array`](mod@array) | [`Array`] and [`Batch`]: columns in memory |
//! | [`plan`] | which type a column of a database has |
//! | [`rows`] | [`ArrowRows`]: the row sink |
//! | [`builder`] | one column under construction |
//! | [`decided`] | what the first values say of a column's type |
//! | [`text`] | texts and bytes of a column |
//! | [`numbers`] | [`NumberColumn`]: a column of numbers as a plain vector
//! | [`bits`] | bits of a column: booleans, and which values are NULL |
//! | [`decimal`] | digits to integers of 128 and 256 bits, and back |
//! | [`moment`] | dates and times to integers, and back |
//! | [`plain`] | values as plain text |
//! | [`stream`] | [`ArrowStream`]: a statement's rows as batches |
//! | [`read`] | values out of arrays, as parameters |
//! | [`insert`] | the statement that takes them |
//!
//! Nothing here is `unsafe`: how memory goes to another library and comes from it is [`crate::arrow_c`].

pub mod array;
mod bits;
mod builder;
mod decided;
mod decimal;
mod error;
pub mod insert;
mod moment;
pub mod numbers;
mod plain;
mod plan;
mod read;
mod rows;
mod stream;
mod text;
pub mod types;

pub use array::{Array, Batch};
pub use insert::insert_statement;
pub use numbers::{NumberColumn, NumberMisfit, Numbers};
pub use plan::{ArrowOptions, has_fractions, type_of};
pub use read::BatchRows;
pub use rows::{ArrowRows, Misfit};
pub use stream::ArrowStream;
pub use types::{DataType, Field, Unit};
