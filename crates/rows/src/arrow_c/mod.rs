//! Arrow's C data interface and C stream interface: how batches leave for other libraries in this process, and come from them.
//!
//! Three structs of C are all there is to it, and they are fixed for good; so they are written here, and no library of
//! Arrow's is linked (`docs/decisions/0081-arrow.md`).
//!
//! | module | what it holds |
//! |---|---|
//! | [`abi`] | the structs |
//! | [`memory`] | [`Memory`]: bytes that arrays share, ours or another library's |
//! | [`growing`] | [`Growing`]: the text of a batch while it comes |
//! | [`give`] | batches to another library |
//! | [`take`] | batches of another library |
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>,
//! <https://arrow.apache.org/docs/format/CStreamInterface.html>.

pub mod abi;
pub mod give;
pub mod growing;
pub mod memory;
pub mod take;

pub use abi::{ArrowArray, ArrowArrayStream, ArrowSchema};
pub use give::{Batches, schema_of, stream_of};
pub use growing::Growing;
pub use memory::{Memory, Plain};
pub use take::{ForeignStream, fields_of};
