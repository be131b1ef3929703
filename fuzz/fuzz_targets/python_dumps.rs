//! Objects of every kind written by `onecopy.json.dumps` and its kin: the bytes that the standard
//! library of Python writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_dumps", data));
