//! Sets the linker options of `libonecopy.so`: a soname that contains the interface version, and
//! simdutf's C++ runtime as a static library, so that no `libstdc++.so` is required at run time.
//!
//! The crate `simdutf` passes `-lstdc++`. A linker uses the first library of this name on its
//! search path, whether shared or static. So a folder that contains only the compiler's
//! `libstdc++.a` is put first on the search path.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CXX");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" {
        return;
    }
    // The number is ONECOPY_ABI_VERSION, as `tests/library.rs` checks.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libonecopy.so.1");
    match archive() {
        Some(archive) => {
            let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
            std::fs::copy(&archive, out.join("libstdc++.a")).expect("a folder of the build's own");
            println!("cargo:rustc-link-search=native={}", out.display());
        }
        None => println!(
            "cargo:warning=the compiler has no libstdc++.a: libonecopy.so will need libstdc++.so where it runs"
        ),
    }
}

/// Returns the path of the compiler's `libstdc++.a`; `None` if the compiler has no such file.
fn archive() -> Option<PathBuf> {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".into());
    let printed = Command::new(compiler)
        .arg("-print-file-name=libstdc++.a")
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(printed.stdout).ok()?.trim());
    // If the compiler has no such file, it prints the bare name.
    (path.parent() != Some(Path::new("")) && path.is_file()).then_some(path)
}
