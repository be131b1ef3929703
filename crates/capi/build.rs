//! Linking of `libonecopy.so`: with a soname that contains the interface's version, and with
//! simdutf's C++ runtime inside, so that it needs no `libstdc++.so` at run time.
//!
//! The crate `simdutf` passes `-lstdc++`, and linkers use the first library of that name on their
//! path, shared or not: a folder that contains only the compiler's `libstdc++.a` is put before the
//! others.

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
    // The number is ONECOPY_ABI_VERSION; `tests/library.rs` holds them together.
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

/// The compiler's `libstdc++.a`, where it has one.
fn archive() -> Option<PathBuf> {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".into());
    let printed = Command::new(compiler)
        .arg("-print-file-name=libstdc++.a")
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(printed.stdout).ok()?.trim());
    // Where there is none, it repeats the name.
    (path.parent() != Some(Path::new("")) && path.is_file()).then_some(path)
}
