"""The failures of an export: which, and how often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """The probabilities of failures, and the times that they cost."""

    #: An attempt at a part dies. The step at which it dies is uniformly distributed, so that the
    #: short steps between two renames are reached as often as the long ones.
    p_death: float = 0.0
    #: An attempt stops for `stall_s` at a step, and then continues. It is regarded as dead before.
    p_stall: float = 0.0
    stall_s: float = 600.0
    #: A worker is slow by `straggler_factor`.
    p_straggler: float = 0.0
    straggler_factor: float = 8.0
    #: Deaths of the coordinator at random times of the export, and at a step of its end.
    n_coordinator_deaths: int = 0
    p_death_at_finish: float = 0.0
    #: Power failures of the machine with the folder, at random times. All processes end.
    n_power_failures: int = 0
    #: The time until a death is detected, and until a worker or coordinator is available again.
    detection_s: float = 10.0
    restart_s: float = 30.0
    power_failure_s: float = 120.0
    #: The time until a part is tried again whose lock or connection was refused; it doubles.
    back_off_s: float = 5.0
    most_back_off_s: float = 60.0


@dataclass(frozen=True)
class Policy:
    """The decisions of the coordinator."""

    #: Parts with the most estimated rows are started first; otherwise, in the order of the plan.
    largest_first: bool = True
    #: An attempt that takes `slow_factor` times as long as expected, when no part waits: "wait" for
    #: it, start a "duplicate", or "terminate" it and start again on another worker.
    slow_attempts: str = "wait"
    slow_factor: float = 3.0
    slow_check_s: float = 10.0


NO_FAULTS = Faults()
LARGEST_FIRST = Policy()
