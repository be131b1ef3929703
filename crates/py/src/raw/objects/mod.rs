//! Creates Python objects from the events of the JSON and BSON readers.
//! | module | contents |
//! |---|---|
//! | [`building`] | the values that are pending until the end of their list or dict |
//! | [`containers`] | creates lists and dicts from these values |
//! | [`fresh_number`] | creates `int` and `float` objects |
//! | [`recent_keys`] | a cache of recent keys |
//! | [`shapes`] | a cache of dicts, from which dicts with the same keys are copied |
//! | [`text_hash`] | a cache of recent short strings |
//! | [`scalars`] | creates `str` objects, and `int` objects of many digits |

pub(crate) mod building;
mod containers;
pub(crate) mod fresh_number;
mod recent_keys;
pub(crate) mod scalars;
mod shapes;
pub(crate) mod text_hash;
