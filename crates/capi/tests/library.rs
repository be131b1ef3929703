//! Tests the exported and imported symbols of `libonecopy.so`, as printed by `readelf` (binutils).
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod support;

use std::process::Command;

use onecopy::abi::ONECOPY_ABI_VERSION;
use support::{library, output};

/// The newest version of glibc that the library may require: that of Debian 12.
const GLIBC: (u32, u32) = (2, 36);

fn readelf(option: &str) -> String {
    output(Command::new("readelf").args(["-W", option]).arg(library()))
}

/// Returns the names in the dynamic symbol table of the library: the symbols that it defines if
/// `defined` is `true`, otherwise those that it imports.
fn symbols(defined: bool) -> Vec<String> {
    let is_name = |name: &&str| !name.is_empty();
    readelf("--dyn-syms")
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|columns| {
            columns.len() >= 8 && columns[0].trim_end_matches(':').parse::<u32>().is_ok()
        })
        .filter(|columns| (columns[6] != "UND") == defined)
        .filter_map(|columns| {
            columns
                .get(7)
                .filter(|name| is_name(name))
                .map(|n| (*n).to_owned())
        })
        .collect()
}

#[test]
fn it_exports_what_the_header_declares_and_nothing_else() {
    let header = include_str!("../include/onecopy.h");
    let mut declared: Vec<&str> = header
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("onecopy_") && header.contains(&format!("{word}(")))
        .collect();
    declared.sort_unstable();
    declared.dedup();
    let mut exported = symbols(true);
    exported.sort_unstable();
    assert_eq!(exported, declared);
    assert_eq!(exported.len(), 15);
}

#[test]
fn it_needs_nothing_where_it_runs_but_the_c_library_and_the_unwinder() {
    let needed: Vec<String> = readelf("-d")
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()))
        .filter(|name| !name.starts_with("ld-linux"))
        .collect();
    for name in &needed {
        assert!(
            ["libc.so.6", "libm.so.6", "libgcc_s.so.1"].contains(&name.as_str()),
            "{needed:?}"
        );
    }
    assert!(needed.contains(&"libc.so.6".to_owned()), "{needed:?}");
}

#[test]
fn it_runs_with_the_glibc_of_debian_12() {
    let imported = symbols(false);
    let versions: Vec<(u32, u32)> = imported
        .iter()
        .filter_map(|name| name.split_once("@GLIBC_"))
        .map(|(_, version)| {
            let mut numbers = version
                .split('.')
                .map(|n| n.parse::<u32>().expect("a number"));
            (numbers.next().unwrap(), numbers.next().unwrap_or(0))
        })
        .collect();
    assert!(versions.len() > 10, "{imported:?}");
    let newest = versions.iter().max().unwrap();
    assert!(*newest <= GLIBC, "glibc {newest:?} is required");
}

#[test]
fn its_name_tells_the_version_of_the_interface() {
    let name = format!("Library soname: [libonecopy.so.{ONECOPY_ABI_VERSION}]");
    assert!(readelf("-d").contains(&name), "not {name}");
}
