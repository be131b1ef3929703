//! Objects made of what the reader of a format tells: JSON's, BSON's.
//!
//! | module | what it holds |
//! |---|---|
//! | [`building`] | the values that wait for the end of their list or dict |
//! | [`containers`] | lists and dicts of them |
//! | [`fresh_number`] | numbers |
//! | [`keys`] | keys that were made before |
//! | [`shapes`] | dicts with the same keys as one before |
//! | [`values`] | short strings that were made before |
//! | [`scalars`] | texts, and numbers of many digits |

pub(crate) mod building;
mod containers;
pub(crate) mod fresh_number;
mod keys;
pub(crate) mod scalars;
mod shapes;
pub(crate) mod values;
