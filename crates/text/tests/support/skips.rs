//! Reports tests that are skipped because a requirement is missing: on standard error (not captured
//! by libtest), and as a failure if `CI=true`. The file is included by its path in the tests of
//! several crates.
#![allow(dead_code, reason = "each of them uses a part")]

use std::io::Write;

/// Returns `true` if a skipped test is a failure: if the variable `CI` has one of the values that
/// the Python tests accept too.
pub(crate) fn in_ci() -> bool {
    let ci = std::env::var("CI").unwrap_or_default().to_lowercase();
    ["1", "true", "yes"].contains(&ci.as_str())
}

/// Reports a skipped test and the reason.
///
/// # Panics
/// Under `CI=true`.
pub(crate) fn skip(reason: &str) {
    assert!(!in_ci(), "under CI=true a skip is a failure: {reason}");
    report(reason);
}

fn report(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // One call of `write`: lines of several threads do not mix.
    let line = format!("skipped: {name}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The kernel families by their names in `ONECOPY_KERNEL`, the least capable one first.
const KERNELS: [&str; 4] = ["scalar", "sse2", "avx2", "avx512"];

/// Returns `true` if the tests of a kernel family can run, which is `is_here`; otherwise reports
/// them as skipped.
///
/// # Panics
/// Under `CI=true`, if the processor lacks the kernel and is expected to have it. It is expected to
/// have each kernel up to `ONECOPY_TEST_KERNEL`, or all of them without this variable.
pub(crate) fn can_test(kernel: &str, is_here: bool) -> bool {
    if is_here {
        return true;
    }
    let forced = std::env::var("ONECOPY_KERNEL").unwrap_or_default();
    if cfg!(miri) || KERNELS.contains(&forced.as_str()) {
        report(&format!("`{kernel}` is left out by Miri or ONECOPY_KERNEL"));
        return false;
    }
    let rank = |name: &str| KERNELS.iter().position(|known| *known == name);
    let most = std::env::var("ONECOPY_TEST_KERNEL").unwrap_or_default();
    let reason = format!(
        "this processor lacks the kernel `{kernel}`\n\
         ONECOPY_TEST_KERNEL={} says that none better is expected",
        KERNELS[rank(kernel).unwrap_or(1).max(1) - 1]
    );
    if rank(&most).is_some_and(|most| rank(kernel) > Some(most)) {
        report(&reason);
    } else {
        skip(&reason);
    }
    false
}
