//! Lexical analysis of SQL text: the lexer, named parameters, the kinds of statements, and the
//! generated INSERT.
//!
//! | module | contents |
//! |---|---|
//! | `copy_statement` | recognises a COPY between a table and the client, and its direction |
//! | [`dialect`] | the SQL dialects and their lexical rules |
//! | [`insert`] | the statement that inserts rows into a table |
//! | `lexer` | splits SQL text into tokens |
//! | [`named`] | replaces `:name` and `%(name)s` by positional parameters |
//! | [`query_shape`] | finds table, clauses and placeholder of a query that is read in several parts |
//! | [`statements`] | classifies a statement by its tokens; detects a second statement in a text |

pub(crate) mod copy_statement;
pub mod dialect;
pub mod insert;
pub(crate) mod lexer;
pub mod named;
pub mod query_shape;
pub mod statements;
