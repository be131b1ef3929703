//! Sets the path of the Python interpreter and of its library, for targets that embed it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "python")]
    python();
}

#[cfg(feature = "python")]
fn python() {
    pyo3_build_config::add_libpython_rpath_link_args();
    let executable = pyo3_build_config::get()
        .executable()
        .expect("PyO3 has queried an interpreter");
    println!("cargo::rustc-env=PYTHON_EXECUTABLE={executable}");
}
