//! The rows of one fetch of an ODBC statement, in the buffers that the driver filled.
//!
//! | module | what it holds |
//! |---|---|
//! | [`buffer`] | memory a driver writes into |
//! | [`rowset`] | a slot and an indicator per row and column |
//! | [`arena`] | values that do not fit their slot |
//! | [`calls`] | the driver calls that read rows and long values |
//! | [`long`] | the state machine that reads them, whole or in parts |
//! | [`piece`] | a value by `SQLGetData`, window by window |
//! | [`current`] | the [`crate::Block`] that is emitted from |
//!
//! A value that does not fit is never cut: its indicator says so, and its whole is fetched with `SQLGetData` into the
//! arena, or passes through it part by part.

pub(crate) mod arena;
pub(crate) mod buffer;
pub(crate) mod calls;
pub(crate) mod current;
#[cfg(fuzzing)]
pub mod fuzzing;
pub(crate) mod long;
pub(crate) mod piece;
pub(crate) mod rowset;

pub use current::CurrentBlock;
