//! The rows of one fetch of an ODBC statement, in the buffers that the driver filled.
//! `RowsetReader` completes the rows, `CurrentBlock` emits them.
//!
//! | module | contents |
//! |---|---|
//! | [`buffer`] | memory to which a driver writes |
//! | [`rowset`] | a slot and an indicator per row and column |
//! | [`arena`] | memory for values that do not fit in their slot |
//! | [`calls`] | the driver calls that read rows and long values |
//! | [`long`] | the state machine that reads rows, and long values whole or in parts |
//! | [`piece`] | reads a value by `SQLGetData`, window by window |
//! | [`current`] | the [`crate::Block`] whose rows are emitted |
//!
//! A value that does not fit in its slot is never truncated: its indicator reports the length, and
//! `SQLGetData` reads the value into the arena, whole or in parts.

pub(crate) mod arena;
pub(crate) mod buffer;
pub(crate) mod calls;
pub(crate) mod current;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod long;
pub(crate) mod piece;
pub(crate) mod rowset;

pub use current::CurrentBlock;
