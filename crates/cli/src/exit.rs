//! Exit codes. `docs/reference/command.md` lists them.

/// The command succeeded.
pub const OK: i32 = 0;
/// The query failed, or its output could not be written completely.
pub const FAILED: i32 = 1;
/// The command line or the configuration is wrong.
pub const USAGE: i32 = 2;
/// The connection to the database could not be opened.
pub const CONNECT: i32 = 3;
/// The exit code of a command that was stopped by Ctrl-C or SIGTERM.
pub const STOPPED: i32 = 130;
/// The program that reads stdout closed it before the end of the output, as in `… | head`. A shell
/// reports the same exit code for a process that SIGPIPE ended. No message is written.
pub const PIPE_CLOSED: i32 = 141;
