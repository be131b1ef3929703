//! The command, from the wheel's script.
