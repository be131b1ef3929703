//! The C interface: conversions between UTF-16, UTF-8, Latin-1 and BSON strings. The output is
//! written directly into memory that the caller provides.
//!
//! | module | contents |
//! |---|---|
//! | [`abi`] | the functions that `include/onecopy.h` declares |
//! | [`result_code`] | their results: counts, positions and error codes as one number |
//!
//! The conversions are those of [`onecopy_text::convert::within`]; this crate converts pointers to
//! slices, and errors to numbers.
//!
//! # Process contract
//!
//! No function retains a pointer, allocates, starts a thread, takes a lock or does I/O. The first
//! call in a process is an exception: it detects the processor's features and reads the environment
//! variable `ONECOPY_KERNEL`. All functions may be called from several threads at the same time.
//! After the first call, they may also be called in signal handlers. No panic crosses the language
//! boundary. A panic would be a bug; it is caught and returned as
//! [`result_code::ONECOPY_INTERNAL_ERROR`].
#![deny(unsafe_code)]

#[allow(unsafe_code)] // Unsafe boundary: pointers of the caller.
pub mod abi;
pub mod result_code;
