//! Checks that docs/architecture/kernels.md has the table of kernels in the code.

use std::collections::BTreeSet;
use std::path::Path;

use super::TABLE;

/// The columns of the documented table: the kernel families. `_` is the scalar implementation or a
/// composed function.
const FAMILIES: [&str; 5] = ["avx512", "avx2", "sse2", "simdutf", "_"];

/// One row of the table: the kernel family, the limit of its text length, and its source file.
struct Line {
    family: String,
    lengths: String,
    file: String,
}

/// Returns the path of a source file in `crates/text/src/arch`.
fn file_of(module: &[&str]) -> String {
    let file = format!("{}.rs", module.join("/"));
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/arch");
    if src.join(&file).is_file() {
        return file;
    }
    let file = format!("{}/mod.rs", module.join("/"));
    assert!(src.join(&file).is_file(), "{file}");
    file
}

/// Removes the generic arguments, which are in `<…>`.
fn without_generics(text: &str) -> String {
    let mut depth = 0;
    text.replace("=>", "=")
        .chars()
        .filter(|&c| {
            depth += i32::from(c == '<');
            depth -= i32::from(c == '>');
            depth == 0 && c != '>'
        })
        .collect()
}

fn lines(text: &str) -> Vec<Line> {
    let text = without_generics(text);
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (when, path) = part.split_once('=').expect("a family and a function");
            let path: Vec<&str> = path
                .split("::")
                .map(str::trim)
                .filter(|s| !s.is_empty())
                .collect();
            let (family, lengths) = when.trim().split_once(' ').unwrap_or((when.trim(), ""));
            let (_, module) = path.split_last().expect("a function");
            let module = if module.is_empty() {
                &["family"][..]
            } else {
                module
            };
            Line {
                family: family.to_owned(),
                lengths: lengths.replace("up to", "to"),
                file: file_of(module),
            }
        })
        .collect()
}

#[test]
fn the_table_of_kernels_is_that_of_the_architecture() {
    let mut table = String::from("| operation | avx512 | avx2 | sse2 | simdutf | otherwise |\n");
    table += "|---|---|---|---|---|---|\n";
    for (name, text) in TABLE {
        table += &format!("| `{name}` |");
        for family in FAMILIES {
            let cells: Vec<String> = lines(text)
                .into_iter()
                .filter(|line| line.family == family)
                .map(|line| format!("{} {}", line.file, line.lengths).trim().to_owned())
                .collect();
            let cell = cells.join(", ");
            table += &if cell.is_empty() {
                " |".to_owned()
            } else {
                format!(" {cell} |")
            };
        }
        table.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/architecture/kernels.md");
    let page = std::fs::read_to_string(path).expect("the page is in the repository");
    assert!(
        page.contains(&table),
        "kernels.md lacks the table:\n{table}"
    );
}

#[test]
fn each_operation_has_known_families_and_a_line_for_each_processor() {
    let mut names = BTreeSet::new();
    for (name, text) in TABLE {
        assert!(names.insert(name), "{name} is in the table twice");
        let lines = lines(text);
        let columns: Vec<usize> = lines
            .iter()
            .map(|line| {
                let known = FAMILIES.iter().position(|family| *family == line.family);
                known.unwrap_or_else(|| panic!("{name}: no family `{}`", line.family))
            })
            .collect();
        assert_eq!(
            columns.last(),
            Some(&4),
            "{name} has no line for each processor"
        );
    }
}
