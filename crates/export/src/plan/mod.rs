//! Parts of a statement as data: [`plan()`] divides the rows of a query into ranges of a key, and
//! each [`PartSpec`] is the statement of one range, to be executed on any connection.
//!
//! | module | contents |
//! |---|---|
//! | `planner` | [`plan()`]: the steps from a statement to its parts |
//! | [`spec`] | [`Plan`], [`PartSpec`] and their JSON |
//! | `template` | a query with a gap for the predicate of a part |
//! | `key`, `catalog` | the columns to divide by, and the description of a table |
//! | `notes` | sentences about properties of the division |
//! | `sample`, `quantiles`, `boundaries` | quantiles that the database computes, and the choice among them |
//! | `predicate` | the condition of a part |
//! | `snapshot`, `index` | a snapshot of PostgreSQL; sentences about snapshots and indexes |
//! | `hash` | hashes of statements, columns and plans |
//! | `count` | [`count()`]: the number of rows of a statement |
//! | `fetch`, `value_json` | rows as values, values as JSON |
//!
//! The predicates of all parts select each row of the statement exactly once, whatever the
//! boundaries are: the ends are unbounded, and rows with NULL in the key are a part of their own.
//! Old statistics therefore cost only balance.

mod boundaries;
mod catalog;
mod count;
mod fetch;
mod hash;
mod index;
mod key;
mod notes;
mod planner;
mod predicate;
mod quantiles;
mod sample;
mod snapshot;
pub mod spec;
mod template;
mod value_json;

pub use count::count;
pub use planner::{MOST_PARTS, PlanOptions, plan};
pub use spec::{PartSpec, Plan};
pub use template::Position;
