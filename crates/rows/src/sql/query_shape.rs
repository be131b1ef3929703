//! [`QueryShape`]: the table, clauses and placeholder of a query, found in its tokens. They
//! determine whether and how the query can be divided into several queries that each read a part of
//! the rows.

use std::ops::Range;

use super::dialect::Dialect;
use super::lexer::{Lexer, Token, TokenKind};
use crate::error::{Error, ErrorKind};

/// The text in a query that is replaced by the predicate that selects one part of the rows.
pub const PLACEHOLDER: &str = "{part}";

/// The table, clauses and placeholder of one query. All positions are byte offsets in its SQL
/// string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryShape {
    /// The byte range of the query in the SQL string, without the semicolons and comments after it.
    pub text: Range<usize>,
    /// The position of the placeholder `{part}`; `None` if the query has none.
    pub placeholder: Option<Range<usize>>,
    /// The number of `?` in the query.
    pub n_parameters: usize,
    /// The number of `?` parameters before the placeholder `{part}`.
    pub n_parameters_before: usize,
    /// The table, if the query has the form `select COLUMNS from TABLE [where …]` and COLUMNS
    /// contains no function; otherwise `None`. In a query of this form, each row of the table
    /// appears at most once in the result.
    pub table: Option<TableShape>,
    /// `true` if the query itself, not a subquery, has an `ORDER BY`.
    pub is_ordered: bool,
    /// `true` if the query itself, not a subquery, limits the number of its rows.
    pub is_limited: bool,
    /// `true` if the query or a subquery that contains the placeholder has a `LIMIT`, `OFFSET`,
    /// `FETCH` or `TOP`.
    pub limits_part: bool,
    /// `true` if the query or a subquery that contains the placeholder groups its rows, removes
    /// duplicates, or is part of a set operation such as `UNION`.
    pub combines_part: bool,
}

/// The table of a [`QueryShape`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// The names of the table without quotes: schema and table, or only the table.
    pub names: Vec<String>,
    /// The position of the table's name, with its schema.
    pub name: Range<usize>,
    /// The position of the name that qualifies the columns of the query: the table's alias if it
    /// has one, otherwise the last part of the table's name.
    pub alias: Range<usize>,
    /// The position of the keyword `FROM` in the query.
    pub from: usize,
    /// The position in the query after the table's name and its alias.
    pub end: usize,
    /// The position after `WHERE`; `None` if the query has no condition.
    pub condition: Option<usize>,
}

/// The words that begin a query.
const QUERIES: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];
/// The words of statements that change or lock rows.
const WRITES: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "INTO"];
const LIMITS: [&str; 4] = ["LIMIT", "OFFSET", "FETCH", "TOP"];
const COMBINES: [&str; 6] = [
    "GROUP",
    "DISTINCT",
    "HAVING",
    "UNION",
    "INTERSECT",
    "EXCEPT",
];
/// The words that end a `FROM` or `WHERE` clause. A query that has one of these words outside of
/// parentheses has no [`TableShape`].
const CLAUSES: [&str; 16] = [
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "MINUS",
    "WINDOW",
    "FOR",
    "QUALIFY",
    "OPTION",
    "LOCK",
    "PROCEDURE",
];

impl QueryShape {
    /// Finds the table, clauses and placeholder of the only query in `sql`.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] for an unterminated string or comment, a second statement, a
    /// statement that is not a query, a word of a statement that changes rows (`UPDATE`), or a
    /// second placeholder.
    pub fn of(sql: &str, dialect: Dialect) -> Result<QueryShape, Error> {
        let tokens = tokens_of_query(sql, dialect)?;
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return Err(wrong("the SQL is empty"));
        };
        let begins = tokens.iter().find(|token| token.text != "(");
        if !begins.is_some_and(|token| QUERIES.iter().any(|word| token.is(word))) {
            return Err(wrong(format!(
                "the SQL begins with `{}`: only a query (`select`, `with`, `values`) can be read in \
                 parts",
                begins.unwrap_or(first).text
            )));
        }
        if let Some(word) = tokens.iter().find(|t| WRITES.iter().any(|word| t.is(word))) {
            return Err(wrong(format!(
                "the SQL contains `{}`: a statement that changes or locks rows cannot be read in \
                 parts\nput a column of that name in quotes",
                word.text
            )));
        }
        let groups = Groups::of(&tokens);
        let placeholder = groups.placeholder(&tokens)?;
        let at = placeholder.as_ref().map(|at| at.start);
        let marks = |t: &&Token<'_>| t.kind == TokenKind::QuestionMark;
        let is_before = |t: &&Token<'_>| at.is_some_and(|at| t.start < at);
        let has = |words: &[&str], is_in: &dyn Fn(usize) -> bool| {
            let found = tokens.iter().enumerate().find(|(index, token)| {
                words.iter().any(|word| token.is(word))
                    && is_in(groups.of[*index])
                    && (!token.is("OFFSET") || counts(tokens.get(index + 1)))
            });
            found.is_some()
        };
        let in_chain = |group| groups.chain.contains(&group);
        Ok(QueryShape {
            text: 0..last.start + last.text.len(),
            n_parameters: tokens.iter().filter(marks).count(),
            n_parameters_before: tokens.iter().filter(marks).filter(is_before).count(),
            table: table(&tokens, &groups),
            is_ordered: has(&["ORDER"], &|group| group == 0),
            is_limited: has(&LIMITS, &|group| group == 0),
            limits_part: has(&LIMITS, &in_chain),
            combines_part: has(&COMBINES, &in_chain),
            placeholder,
        })
    }
}

/// Returns `true` if `token`, which follows a word `OFFSET`, can be the number of rows of an
/// `OFFSET` clause. Otherwise the word `OFFSET` is the name of a column.
fn counts(token: Option<&Token<'_>>) -> bool {
    token.is_some_and(|t| {
        t.kind == TokenKind::QuestionMark
            || t.text
                .starts_with(|c: char| c.is_ascii_digit() || "(:@$".contains(c))
    })
}

/// Returns the tokens of the only statement in `sql`, without white space and comments.
fn tokens_of_query(sql: &str, dialect: Dialect) -> Result<Vec<Token<'_>>, Error> {
    let (mut tokens, mut is_ended) = (Vec::new(), false);
    for token in Lexer::of_statement(sql, dialect) {
        if let Some(what) = token.unclosed {
            return Err(wrong(format!("a {what} in the SQL does not end")));
        }
        match token.kind {
            _ if token.is_blank() => {}
            TokenKind::Semicolon => is_ended = !tokens.is_empty(),
            _ if is_ended => return Err(wrong("the SQL has more than one statement")),
            _ => tokens.push(token),
        }
    }
    Ok(tokens)
}

/// The groups of a query's tokens. Each pair of parentheses is a group, and the groups are numbered
/// from 1.
struct Groups {
    /// For each token, the number of the innermost group (pair of parentheses) that contains it; 0
    /// for a token outside of all parentheses.
    of: Vec<usize>,
    /// The numbers of the groups that contain the placeholder. The first number is 0 (the whole
    /// query), and the last one is the innermost pair of parentheses. Empty if the query has no
    /// placeholder.
    chain: Vec<usize>,
}

impl Groups {
    fn of(tokens: &[Token<'_>]) -> Groups {
        let mut groups = Groups {
            of: Vec::with_capacity(tokens.len()),
            chain: Vec::new(),
        };
        let (mut stack, mut n) = (vec![0], 0);
        for (index, token) in tokens.iter().enumerate() {
            if token.text == ")" && stack.len() > 1 {
                stack.pop();
            }
            groups.of.push(stack.last().copied().unwrap_or(0));
            if token.text == "(" {
                n += 1;
                stack.push(n);
            }
            if is_placeholder(&tokens[index..]) {
                groups.chain.clone_from(&stack);
            }
        }
        groups
    }

    fn placeholder(&self, tokens: &[Token<'_>]) -> Result<Option<Range<usize>>, Error> {
        let mut found = (0..tokens.len()).filter(|at| is_placeholder(&tokens[*at..]));
        let Some(first) = found.next() else {
            return Ok(None);
        };
        if found.next().is_some() {
            return Err(wrong(format!(
                "the SQL contains `{PLACEHOLDER}` twice: a row that is made from two parts would be \
                 in no part\nwrite it once, in the condition of one table"
            )));
        }
        let start = tokens[first].start;
        Ok(Some(start..start + PLACEHOLDER.len()))
    }
}

/// Returns `true` if `tokens` begins with the three tokens of the placeholder `{part}`, without
/// white space between them.
fn is_placeholder(tokens: &[Token<'_>]) -> bool {
    match tokens {
        [open, word, close, ..] => {
            open.text == "{"
                && word.text == "part"
                && close.text == "}"
                && close.start == open.start + "{part".len()
        }
        _ => false,
    }
}

/// Returns the table of a query `select COLUMNS from TABLE [where …]`; `None` for any other query.
fn table(tokens: &[Token<'_>], groups: &Groups) -> Option<TableShape> {
    if !tokens.first()?.is("SELECT") {
        return None;
    }
    let from = tokens.iter().position(|token| token.is("FROM"))?;
    let is_plain = |t: &Token<'_>| {
        t.text != "("
            && t.kind != TokenKind::QuestionMark
            && !["DISTINCT", "TOP", "ALL"].iter().any(|word| t.is(word))
    };
    if !tokens[1..from].iter().all(is_plain) {
        return None;
    }
    let mut at = from + 1;
    if ["ONLY", "LATERAL"]
        .iter()
        .any(|word| tokens.get(at).is_some_and(|t| t.is(word)))
    {
        return None;
    }
    let mut names = vec![name(tokens.get(at)?)?];
    let mut last_name = at;
    while tokens.get(at + 1).is_some_and(|t| t.text == ".") {
        at += 2;
        names.push(name(tokens.get(at)?)?);
        last_name = at;
    }
    at += 1;
    let mut alias = last_name;
    if tokens.get(at).is_some_and(|t| t.is("AS")) {
        at += 1;
        name(tokens.get(at)?)?;
    }
    if let Some(token) = tokens.get(at)
        && !token.is("WHERE")
        && name(token).is_some()
        && !CLAUSES.iter().any(|word| token.is(word))
    {
        alias = at;
        at += 1;
    }
    let range = |index: usize| {
        let token = &tokens[index];
        token.start..token.start + token.text.len()
    };
    let condition = match tokens.get(at) {
        None => None,
        Some(token) if token.is("WHERE") => Some(range(at).end),
        Some(_) => return None,
    };
    let ends = |(index, token): (usize, &Token<'_>)| {
        groups.of[index] == 0 && CLAUSES.iter().any(|word| token.is(word))
    };
    if tokens.iter().enumerate().skip(at).any(ends) {
        return None;
    }
    Some(TableShape {
        names,
        name: range(from + 1).start..range(last_name).end,
        alias: range(alias),
        from: range(from).start,
        end: range(at - 1).end,
        condition,
    })
}

/// Returns the text of a token that is a name, without its quotes; `None` for any other token.
fn name(token: &Token<'_>) -> Option<String> {
    let text = token.text;
    match token.kind {
        TokenKind::Word if !text.starts_with(|c: char| c.is_ascii_digit()) => Some(text.to_owned()),
        TokenKind::Quoted => unquoted(text),
        _ => None,
    }
}

/// Returns a quoted name without its quotes; `None` for a string.
fn unquoted(text: &str) -> Option<String> {
    let close = match text.chars().next()? {
        '"' => "\"",
        '`' => "`",
        '[' => "]",
        _ => return None,
    };
    let inner = text[1..].strip_suffix(close)?;
    Some(inner.replace(&close.repeat(2), close))
}

/// Returns the parts of a column's name without quotes, for example `o` and `id` of `o.id`; `None`
/// if `text` is not a column's name.
#[must_use]
pub fn column_names(text: &str, dialect: Dialect) -> Option<Vec<String>> {
    let tokens: Vec<_> = Lexer::of_statement(text, dialect).collect();
    if tokens.len().is_multiple_of(2) || tokens.iter().any(|t| t.unclosed.is_some()) {
        return None;
    }
    let parts = tokens.iter().enumerate().map(|(index, token)| {
        let is_dot = index % 2 == 1;
        match is_dot {
            true => (token.text == ".").then_some(None),
            false => name(token).map(Some),
        }
    });
    let names: Option<Vec<Option<String>>> = parts.collect();
    names.map(|names| names.into_iter().flatten().collect())
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Programming, message)
}

#[cfg(test)]
#[path = "query_shape_tests.rs"]
mod tests;
