//! Objects made of what the JSON reader tells.
//!
//! | module | what it holds |
//! |---|---|
//! | [`building`] | the values that wait for the end of their list or dict |
//! | [`containers`] | lists and dicts of them |
//! | [`keys`] | keys that were made before |
//! | [`scalars`] | numbers and texts |

pub(crate) mod building;
mod containers;
mod keys;
pub(crate) mod scalars;
