//! Tells the code which CPython it is built for: the layout of `str` depends on it.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
