//! PostgreSQL by its own protocol (3.0), without a driver.
//!
//! | module | what it contains |
//! |---|---|
//! | `target` | connection URLs and `key=value` strings to libpq's keywords |
//! | `surroundings` | the service file, `PG*` variables, the password file |
//! | `settings` | the settings of a connection |
//! | `message` | messages of the server, read from received bytes |
//! | `fields` | the fields of errors and notices |
//! | `startup` | the start of a session: authentication |
//! | `server` | what the server has reported of its session |

mod binding;
mod buffer;
mod cancel;
mod connection;
mod dial;
mod execute;
mod fields;
mod message;
#[cfg(test)]
mod message_tests;
mod moments;
mod open;
mod parameters;
mod rows;
mod server;
mod settings;
mod shared;
mod socket;
mod startup;
mod statement;
mod statement_cache;
mod surroundings;
mod target;
mod tls;
mod types;
mod wire;

pub use connection::Connection;
pub use rows::Rows;
pub use statement::Statement;
