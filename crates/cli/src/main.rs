//! The `onecopy` command.
#![deny(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let extra = onecopy_cli::Extra {
        again: Some(std::env::args_os().collect()),
        ..onecopy_cli::Extra::default()
    };
    let code = onecopy_cli::run(std::env::args_os(), extra);
    // All exit codes, defined in `exit`, are in the range 0 to 255.
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
