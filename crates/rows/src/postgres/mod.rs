//! PostgreSQL by its own protocol (3.0), without a driver.
//!
//! | module | what it contains |
//! |---|---|
//! | `target` | connection URLs and `key=value` strings to libpq's keywords |
//! | `surroundings` | the service file, `PG*` variables, the password file |
//! | `settings` | the settings of a connection |
//! | `socket`, `tls`, `binding` | TCP, unix sockets and TLS; what SCRAM is bound to |
//! | `buffer` | memory that bytes are received into, and blocks of rows are |
//! | `message`, `fields` | messages of the server, read from received bytes; the fields of errors and notices |
//! | `startup`, `server` | the start of a session: authentication; what the server has reported of it |
//! | `dial`, `open` | the hosts in their order, TLS or not, the login, the kind of session |
//! | `wire` | a session's socket with what was received and what is to be sent |
//! | `types`, `moments`, `parameters` | types and forms of columns, dates and times in binary form, parameters |
//! | `rows` | a block of rows: the receive buffer, of which a cell is a slice |
//! | `shared`, `statement_cache` | what a connection and its statements share; statements by their texts |
//! | `execute`, `statement`, `connection`, `cancel` | what a user calls |

mod binding;
mod buffer;
mod cancel;
mod connection;
mod dial;
mod execute;
mod fields;
#[cfg(fuzzing)]
pub mod fuzzing;
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
