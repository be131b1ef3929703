//! Arrow's C data interface and C stream interface: batches are exported to, and imported from,
//! other libraries in this process.
//!
//! The interfaces consist of three C structs with a stable layout. This module defines them, so no
//! Arrow library is needed (`docs/decisions/0081-arrow.md`).
//!
//! | module | contents |
//! |---|---|
//! | [`abi`] | the structs |
//! | [`memory`] | [`Memory`]: bytes that arrays share, allocated by this library or by another |
//! | [`growing`] | [`Growing`]: the text of a column under construction |
//! | [`export`] | exports batches to another library |
//! | [`import`] | imports batches of another library |
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>,
//! <https://arrow.apache.org/docs/format/CStreamInterface.html>.

pub mod abi;
pub mod export;
pub mod growing;
pub mod import;
pub mod memory;

pub use abi::{ArrowArray, ArrowArrayStream, ArrowSchema};
pub use export::{Batches, schema_of, stream_of};
pub use growing::Growing;
pub use import::{ForeignStream, fields_of};
pub use memory::{Memory, Plain};
