//! Tests that the program in `docs/guide/c.md` compiles with the header and the library without
//! warnings, and prints the output that the page shows.
#![cfg(unix)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::{library, output};

/// Returns the text of the first fenced code block in `page` that is marked with `language`.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("\n```{language}\n"))
        .unwrap_or_else(|| panic!("the page has no {language}"));
    rest.split_once("\n```").expect("a block ends").0
}

/// Creates a folder that contains the library under the file names of an installation.
fn installed(name: &str) -> std::path::PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).expect("a folder of the build's own");
    for name in ["libonecopy.so", "libonecopy.so.1"] {
        fs::copy(library(), place.join(name)).expect("the library is copied");
    }
    place
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/c.md");
    fs::read_to_string(path).expect("the page of this checkout")
}

/// Compiles `source` with the header and the library, runs the program, and returns its output.
fn run(compiler: &str, standard: &str, place: &Path, file: &str, source: &str) -> String {
    fs::write(place.join(file), source).expect("the source is written");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    output(
        Command::new(compiler)
            .current_dir(place)
            .args([
                standard,
                "-O1",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-o",
                "program",
                file,
            ])
            .arg(format!("-I{}", include.display()))
            .arg(format!("-L{}", place.display()))
            .args(["-lonecopy", &format!("-Wl,-rpath,{}", place.display())]),
    );
    output(Command::new(place.join("program")).env_remove("LD_LIBRARY_PATH"))
}

#[test]
fn the_program_of_the_guide_prints_what_the_page_says() {
    let (page, place) = (page(), installed("guide"));
    let printed = run("cc", "-std=c11", &place, "convert.c", block(&page, "c"));
    assert_eq!(printed.trim_end(), block(&page, "text"));
}

#[test]
fn the_header_serves_cpp_too() {
    let place = installed("cpp");
    let source = "#include <onecopy.h>\n#include <cstdio>\n\
        int main() { std::printf(\"%s %u\\n\", onecopy_version(), onecopy_abi_version()); }\n";
    let printed = run("c++", "-std=c++11", &place, "versions.cpp", source);
    assert_eq!(printed, format!("{} 1\n", env!("CARGO_PKG_VERSION")));
}
