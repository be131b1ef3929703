//! The C interface: text between UTF-16, UTF-8 and Latin-1, and strings of BSON, straight into memory of the caller's.
//!
//! | module | what it holds |
//! |---|---|
//! | [`abi`] | the functions, as `include/onecopy.h` declares them |
//! | [`answer`] | what a result of theirs means |
//!
//! The conversions are those of [`onecopy_text::convert::within`]; here pointers become slices, and errors numbers.
//!
//! # Process contract
//!
//! No function keeps anything, allocates, starts a thread, locks or does I/O, but for the first call of a process, which asks
//! the processor what it has and reads the variable `ONECOPY_KERNEL`. All may be called from any threads at once and in signal
//! handlers after that. No panic crosses the border: it would be a bug, is caught, and becomes [`answer::ONECOPY_INTERNAL_ERROR`].
#![deny(unsafe_code)]

#[allow(unsafe_code)] // Fence: pointers of the caller's.
pub mod abi;
pub mod answer;
