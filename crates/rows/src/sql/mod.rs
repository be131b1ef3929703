//! The text of statements, as far as it is read: one lexer that knows where SQL text is not SQL (strings, comments, quoted
//! names), and what is decided by its tokens.
//!
//! | module | what it contains |
//! |---|---|
//! | [`dialect`] | whose SQL it is |
//! | [`lexer`] | the tokens |
//! | [`named`] | `:name` and `%(name)s` parameters to positional ones |
//! | [`statements`] | what kind of statement a text is, and whether it has a second one |

pub mod dialect;
pub(crate) mod lexer;
pub mod named;
pub mod statements;
