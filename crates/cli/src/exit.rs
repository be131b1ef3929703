//! Exit codes. `docs/reference/command.md` lists them.

/// All went well.
pub const OK: i32 = 0;
/// The query failed, or what it gave could not be written whole.
pub const FAILED: i32 = 1;
/// The command line or the configuration is wrong.
pub const USAGE: i32 = 2;
/// No connection to the database.
pub const CONNECT: i32 = 3;
/// Stopped by Ctrl-C or SIGTERM.
pub const STOPPED: i32 = 130;
/// The reader of stdout closed it before the end (`… | head`): what a shell shows of a tool that SIGPIPE ended. Nothing
/// is said about it.
pub const PIPE_CLOSED: i32 = 141;
