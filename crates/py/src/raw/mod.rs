//! The only module of the crate with `unsafe` code. It accesses CPython's data structures.
//!
//! Every function that it exports is safe: it checks its preconditions, or its argument types
//! guarantee them.
//!
//! | module | contents |
//! |---|---|
//! | [`text`] | `str` objects, read and created in their own representation (PEP 393), without a
//! UTF-8 cache |
//! | [`fresh`] | creates `str` objects whose characters are written afterwards |
//! | [`fresh_bytes`] | creates `bytes` objects whose data is written afterwards |
//! | [`growing_str`] | a `str` that is created from bytes, block by block |
//! | [`pages`] | large memory pages for large new objects |
//! | [`utf8_view`] | views of the UTF-8 of a `str` |
//! | [`list_builder`] | builds a list in order |
//! | [`objects`] | lists, dicts and values from the events of a JSON or BSON reader |
//! | [`tuple_builder`] | builds row tuples, whose items are set in any order |
//! | [`text_cache`] | a cache of recent texts of a column |
//! | [`ndarray`] | arrays and scalars of NumPy |
//! | [`number`] | `int`, `float`, `decimal.Decimal` |
//! | [`temporal`] | `date`, `time`, `datetime` through the C API of `datetime` |
//! | [`instance`] | instances of Python classes, created without running their code |
//! | [`uuid`] | `uuid.UUID` objects, created without its Python-level constructor |
//! | [`arrow`] | capsules of Arrow's interface |
//! | [`number_column`] | columns of numbers that Python may write to, by the buffer protocol |
//! | [`buffer`] | the memory of any object with a buffer |
//! | [`private_bytes`] | private copies of buffers that other code may write to |
//! | [`codecs`] | CPython's own codecs, for malformed text |
//! | [`function`] | module functions that are called with a C array of arguments |
//! | [`one_thread`] | values that only one thread may use, in objects that any thread may drop |
//! | [`gil`] | acquires and releases the GIL, also during finalization |
//! | [`environ`] | the environ of a WSGI request |
//! | [`pinned_bytes`] | `bytes` objects that are sent from their own memory |
//! | [`binary`] | creates `bytes` objects, which may grow while they are filled |
//! | [`collector`] | disables the cyclic garbage collector while rows are built |
//! | [`context`] | context variables |
//! | [`descriptor`] | file descriptors that are written to with the GIL released |
//! | [`process`] | detects forks, the main thread and the main interpreter |
//! | [`reserve`] | the allocator, which reserves memory for small allocations |
//! | [`stack`] | checks the space that is left on a thread's C stack |
//! | [`encode`] | encodes Python objects as JSON and BSON |
//! | [`interrupt`] | cancels a driver call that blocks when Ctrl-C is pressed |

pub(crate) mod arrow;
pub(crate) mod binary;
pub(crate) mod buffer;
pub(crate) mod codecs;
pub(crate) mod collector;
pub(crate) mod context;
pub(crate) mod descriptor;
pub(crate) mod encode;
pub(crate) mod environ;
pub(crate) mod fresh;
pub(crate) mod fresh_bytes;
pub(crate) mod function;
pub(crate) mod gil;
pub(crate) mod growing_str;
pub(crate) mod instance;
pub(crate) mod interrupt;
pub(crate) mod list_builder;
pub(crate) mod ndarray;
pub(crate) mod number;
pub(crate) mod number_column;
pub(crate) mod objects;
pub(crate) mod one_thread;
mod pages;
pub(crate) mod pinned_bytes;
pub(crate) mod private_bytes;
pub(crate) mod process;
pub(crate) mod reserve;
pub(crate) mod stack;
mod str_header;
pub(crate) mod temporal;
pub(crate) mod text;
pub(crate) mod text_cache;
pub(crate) mod tuple_builder;
pub(crate) mod utf8_view;
pub(crate) mod uuid;
