//! Lexical analysis of SQL text: the lexer, named parameters, the kinds of statements, and the
//! generated INSERT.
//!
//! | module | contents |
//! |---|---|
//! | [`dialect`] | the SQL dialects and their lexical rules |
//! | [`insert`] | the statement that inserts rows into a table |
//! | `lexer` | splits SQL text into tokens |
//! | [`named`] | replaces `:name` and `%(name)s` by positional parameters |
//! | [`query_shape`] | the table, the clauses and the placeholder of a query |
//! | [`statements`] | the kind of a statement; a second statement in a text |

pub mod dialect;
pub mod insert;
pub(crate) mod lexer;
pub mod named;
pub mod query_shape;
pub mod statements;
