//! Divides a statement into parts: [`plan()`] divides the rows of a query into ranges of a key.
//! Each [`PartSpec`] is the statement of one range, which any connection can execute.
//!
//! | module | contents |
//! |---|---|
//! | `planner` | [`plan()`]: makes the parts of a statement |
//! | [`spec`] | [`Plan`], [`PartSpec`] and their JSON |
//! | `template` | a query into which the predicate of a part is inserted |
//! | `key`, `catalog` | the columns to divide by, and the description of a table |
//! | `notes` | sentences for the user about properties of the parts |
//! | `sample`, `quantiles`, `boundaries` | the database's quantiles, and the boundaries among them |
//! | `predicate` | the condition of a part |
//! | `snapshot`, `index` | a snapshot of PostgreSQL; sentences about snapshots and indexes |
//! | `hash` | hashes of statements, columns and plans |
//! | `count` | [`count()`]: the number of rows of a statement |
//! | `fetch`, `value_json` | the rows of a query as values; values as JSON |
//!
//! For any boundaries, the parts together contain each row of the statement exactly once: the first
//! and the last range are unbounded, and rows with NULL in the key are in a separate part. Outdated
//! statistics therefore only make the parts unequal in size.

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
