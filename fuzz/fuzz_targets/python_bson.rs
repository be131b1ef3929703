//! `onecopy.bson.decode` with any bytes: the objects have the meaning that Extended JSON gives to
//! the bytes, and are encoded as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_bson", data));
