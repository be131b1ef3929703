//! CPython's own data structures: the only place of this crate with `unsafe`.
//!
//! Everything here is safe to call. Each module's functions check what they rely on, or take a type that proves it.
//!
//! | module | what it makes or reads |
//! |---|---|
//! | [`text`] | `str` in its own representation (PEP 393), read and made without a UTF-8 cache |
//! | [`fresh`] | `str` objects whose data is yet to be written |
//! | [`fresh_bytes`] | `bytes` objects whose data is yet to be written |
//! | [`growing_str`] | `str` objects that bytes are written into, block by block |
//! | [`pages`] | large pages for large fresh objects |
//! | [`view`] | views of the UTF-8 that stands behind a `str` |
//! | [`list`] | lists, filled in order |
//! | [`objects`] | lists, dicts and their values as the reader of a format tells them |
//! | [`row`] | row tuples, filled in any order |
//! | [`seen`] | texts of a column that were made before |
//! | [`ndarray`] | arrays and scalars of NumPy |
//! | [`number`] | `int`, `float`, `bool`, `decimal.Decimal` |
//! | [`temporal`] | `date`, `time`, `datetime` through the C API of `datetime` |
//! | [`instance`] | instances of Python's classes, made without running their code |
//! | [`uuid`] | `uuid.UUID` without its Python-level constructor |
//! | [`arrow`] | capsules of Arrow's interface |
//! | [`column`] | numbers that Python may write to, by the buffer protocol |
//! | [`buffer`] | the memory of any object with a buffer, borrowed |
//! | [`private`] | private copies of buffers that others may write to |
//! | [`codecs`] | CPython's own codecs, for malformed text |
//! | [`method`] | functions called with a plain array |
//! | [`ending`] | threads at the end of the interpreter; all that detaches and attaches |
//! | [`environ`] | the environ of a WSGI request |
//! | [`held`] | `bytes` that are sent from where they lie |
//! | [`binary`] | `bytes`, and any object with a buffer |
//! | [`collector`] | the cyclic garbage collector, held off while rows are built |
//! | [`context`] | context variables |
//! | [`output`] | file descriptors to write to, detached |
//! | [`process`] | forks, and threads told apart |
//! | [`reserve`] | the allocator, which keeps some memory back for small allocations |
//! | [`stack`] | the C stack of a thread, and how much of it is left |
//! | [`walk`] | objects gone through and written as JSON |
//! | [`interrupt`] | Ctrl-C while a driver call blocks |

pub(crate) mod arrow;
pub(crate) mod binary;
pub(crate) mod buffer;
pub(crate) mod codecs;
pub(crate) mod collector;
pub(crate) mod column;
pub(crate) mod context;
pub(crate) mod ending;
pub(crate) mod environ;
pub(crate) mod fresh;
pub(crate) mod fresh_bytes;
pub(crate) mod growing_str;
pub(crate) mod held;
pub(crate) mod instance;
pub(crate) mod interrupt;
pub(crate) mod list;
pub(crate) mod method;
pub(crate) mod ndarray;
pub(crate) mod number;
pub(crate) mod objects;
pub(crate) mod output;
mod pages;
pub(crate) mod private;
pub(crate) mod process;
pub(crate) mod reserve;
pub(crate) mod row;
pub(crate) mod seen;
pub(crate) mod stack;
mod str_header;
pub(crate) mod temporal;
pub(crate) mod text;
pub(crate) mod uuid;
pub(crate) mod view;
pub(crate) mod walk;
