//! [`Supervision`]: the state that the serving process shares with its supervisor.

use std::time::Duration;

use crate::driver_calls::DriverCalls;

/// State that the serving process shares with its supervisor.
#[derive(Clone, Debug, Default)]
pub struct Supervision {
    /// The counters of the driver calls that are in progress. `None` if no supervisor watches this
    /// process.
    pub calls: Option<DriverCalls>,
    /// The databases that are disabled because their driver crashed an earlier serving process.
    /// Each entry has the index of the database in the configuration, and the time for which the
    /// database remains disabled. Requests for queries of a disabled database are answered with
    /// 503.
    pub set_aside: Vec<(usize, Duration)>,
}
