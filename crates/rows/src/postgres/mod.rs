//! The PostgreSQL database: its own client for protocol 3.0, without a driver.
//!
//! | module | contents |
//! |---|---|
//! | `target` | parses connection URLs and `key=value` strings to libpq's keywords |
//! | `connect_defaults` | the service file, `PG*` variables, the password file |
//! | `settings` | the settings of a connection |
//! | `socket`, `tls`, `channel_binding` | TCP, unix sockets and TLS; channel binding for SCRAM |
//! | `buffer` | memory for received bytes, which becomes a block of rows |
//! | `message`, `fields` | parses messages of the server from received bytes; fields of errors and notices |
//! | `startup`, `auth_methods`, `server` | authentication, accepted methods; the session's reported state |
//! | `dial`, `open` | opens a session: hosts in order, with or without TLS, login, kind of session |
//! | `wire` | a session: its socket, received bytes, bytes to send |
//! | `delivery` | passes the rows and the end of a result from the connection to the statement that reads them |
//! | `type_table`, `types` | built-in types; types and formats of columns |
//! | `date_time`, `parameters` | dates and times in binary format; parameters |
//! | `value_text` | values as the text that the server writes |
//! | `rows` | a block of rows in the receive buffer, of which a cell is a slice |
//! | `row_check` | the checks of a row's lengths and values |
//! | `row_queue` | rows received before they are requested, in memory and in a temporary file |
//! | `split_row` | a row of 512 KiB or more, read in pieces while it arrives |
//! | `shared`, `statement_cache` | the state that a connection and its statements share; statements by SQL text |
//! | `copy`, `copy_rows`, `copy_values` | COPY between a table and the client; inserts rows of values by binary COPY |
//! | `preamble` | BEGIN and the check for a pooler, sent before a statement |
//! | `execute_many`, `batch` | one statement for many rows of parameters, in batches |
//! | `multi_row_insert` | executes an INSERT for many rows of parameters as an INSERT of several rows |
//! | `waiting`, `later_statements` | the statements of a SQL text after the first one |
//! | `execute`, `statement`, `connection`, `cancel` | the calls of a user: execute, fetch, commit, close, cancel |

mod auth_methods;
mod batch;
mod buffer;
mod cancel;
mod channel_binding;
mod connect_defaults;
mod connection;
mod copy;
mod copy_rows;
mod copy_values;
mod date_time;
mod delivery;
mod dial;
mod execute;
mod execute_many;
mod fields;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod later_statements;
mod message;
#[cfg(test)]
mod message_tests;
mod multi_row_insert;
mod open;
mod parameters;
mod preamble;
mod row_check;
mod row_queue;
mod rows;
mod server;
mod settings;
mod shared;
mod simple_query;
mod socket;
mod split_row;
mod startup;
mod statement;
mod statement_cache;
mod target;
mod tls;
mod tls_settings;
mod type_table;
mod types;
mod value_cell;
mod value_text;
mod waiting;
mod wire;

pub use connection::Connection;
pub use copy::CopyOut;
pub use rows::Rows;
pub use server::Notification;
pub use statement::Statement;
pub use value_text::text_of_value;
