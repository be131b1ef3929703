//! Each function of the Python module that reads or fills a buffer, while a thread writes to that
//! buffer without the interpreter's lock: a result is canonical text, sound objects or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_changing", data));
