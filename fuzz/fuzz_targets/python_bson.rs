//! Any bytes decoded by `onecopy.bson`: the objects say what Extended JSON says of the bytes, and
//! are written again as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_bson", data));
