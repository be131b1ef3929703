//! `onecopy.json.loads` with any text, in every form: the objects are those of Python's standard
//! library.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_loads", data));
