//! `onecopy.json.dumps` and related functions with objects of every kind: the bytes are those of
//! Python's standard library.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_dumps", data));
