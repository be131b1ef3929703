//! Each function of the Python module that reads or fills a buffer, while a thread writes to that
//! buffer without holding the GIL: the result is canonical text, valid objects or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_changing", data));
