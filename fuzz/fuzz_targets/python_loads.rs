//! Any text read by `onecopy.json.loads`, in every form: the objects that the standard library of
//! Python makes of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::python::check;

fuzz_target!(|data: &[u8]| check("python_loads", data));
