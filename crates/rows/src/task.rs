//! Calls that suspend instead of blocking, so that an event loop needs no thread for them.
//!
//! A [`Task`] runs a function call on a separate stack. Code that has to wait for a file descriptor
//! calls `wait`. Within a task, `wait` suspends the task, and [`Task::resume`] returns the [`Wait`]
//! to the event loop. Outside a task, `wait` returns `false`, and the caller blocks. All other code
//! is the same within and outside a task, so a protocol is implemented once.
//!
//! Code that must not run on the stack of a task, because it is not Rust code, is called with
//! [`call_outside`].

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rustix::event::{Timespec, poll};

use crate::fork;

/// The size of a task's stack, in bytes. Pages that were never written use no memory.
const STACK_BYTES: usize = 256 << 10;

/// The largest number of unused stacks that a thread keeps for its next tasks.
const KEPT_STACKS: usize = 64;

/// The longest time for which a task that never has to wait occupies the event loop.
const MOST_BUSY: Duration = Duration::from_millis(2);

/// The event that a suspended task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The file descriptor, which stays open until the task is resumed; −1 to wait only until
    /// `deadline`.
    pub fd: RawFd,
    /// `true` to wait until the descriptor is readable or writable; `false` to wait until it is
    /// readable.
    pub is_for_write: bool,
    /// The time at which the task is resumed even if the event has not occurred; `None` for no
    /// limit.
    pub deadline: Option<Instant>,
}

/// The reason why a task is resumed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resumed {
    /// The event loop has resumed the task: the event has occurred, or may have occurred.
    Ready,
    /// The task was dropped while it was suspended, so its result is not needed. Every `wait` in
    /// the task's call returns an error.
    Abandoned,
}

/// The state of a task after [`Task::resume`] returned.
#[derive(Debug)]
pub enum Progress<T> {
    /// The task is suspended until this event.
    Waiting(Wait),
    /// The call has returned this value.
    Done(T),
}

/// The reason why a task suspends itself.
enum Suspension {
    /// The task waits for this event.
    Wait(Wait),
    /// [`Task::resume`] must call this closure on its own stack, and then continue the task. The
    /// closure itself is stored on the stack of the task.
    CallOutside(NonNull<dyn FnMut()>),
}

type Suspender = Yielder<Resumed, Suspension>;

thread_local! {
    /// The task that runs on this thread; `None` outside a task.
    static CURRENT: Cell<Option<NonNull<Suspender>>> = const { Cell::new(None) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Returns `true` if a task runs on this thread; calls must then not block.
pub(crate) fn is_running() -> bool {
    CURRENT.get().is_some()
}

/// Suspends the task that runs on this thread, and returns the reason why it was resumed. Outside a
/// task, returns `None` immediately.
fn suspend(reason: Suspension) -> Option<Resumed> {
    let suspender = CURRENT.take()?;
    // SAFETY: `CURRENT` is set only while the closure of `Task::new` runs, which borrows the
    // `Yielder` during its whole life. This code runs on that closure's stack, because `resume`
    // clears `CURRENT` before another stack runs.
    let resumed = unsafe { suspender.as_ref() }.suspend(reason);
    CURRENT.set(Some(suspender));
    Some(resumed)
}

/// Suspends the task that runs on this thread until `event`, and returns `true`. The event may not
/// have occurred when this function returns. Outside a task, returns `false` immediately.
///
/// # Errors
/// [`io::ErrorKind::ConnectionAborted`] if the task was dropped.
pub(crate) fn wait(event: Wait) -> io::Result<bool> {
    match suspend(Suspension::Wait(event)) {
        None => Ok(false),
        Some(Resumed::Ready) => Ok(true),
        Some(Resumed::Abandoned) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Calls `work` on the stack of the thread that resumes the task, and returns its result. Outside a
/// task, calls `work` directly. The event loop is blocked until `work` returns.
pub fn call_outside<T>(work: impl FnOnce() -> T) -> T {
    if !is_running() {
        return work();
    }
    let (mut work, mut result) = (Some(work), None);
    let mut call = || {
        if let Some(work) = work.take() {
            result = Some(catch_unwind(AssertUnwindSafe(work)));
        }
    };
    let call: NonNull<dyn FnMut() + '_> = NonNull::from(&mut call);
    // SAFETY: only the lifetime changes. `Task::resume_as` calls the closure before it resumes this
    // stack, and this function does not return before.
    let call = unsafe {
        std::mem::transmute::<NonNull<dyn FnMut() + '_>, NonNull<dyn FnMut() + 'static>>(call)
    };
    suspend(Suspension::CallOutside(call));
    match result.expect("`Task::resume_as` has called it") {
        Ok(value) => value,
        Err(panic) => resume_unwind(panic),
    }
}

/// The time for which a task may run before it lets other tasks run, if it does not have to wait
/// earlier.
#[derive(Debug)]
pub struct TimeSlice {
    end: Instant,
}

impl TimeSlice {
    /// Begins a time slice at the current time.
    #[must_use]
    pub fn begin() -> TimeSlice {
        TimeSlice {
            end: Instant::now() + MOST_BUSY,
        }
    }

    /// If the time slice has ended, suspends the task that runs on this thread, so that the event
    /// loop runs other tasks, and then begins the next time slice. Does nothing outside a task.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionAborted`] if the task was dropped.
    pub fn check(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if now > self.end {
            wait(Wait {
                fd: -1,
                is_for_write: false,
                deadline: Some(now),
            })?;
            *self = TimeSlice::begin();
        }
        Ok(())
    }
}

/// Waits for the duration `time`: suspends the task that runs on this thread, or blocks outside a
/// task. It is used to wait for a change that no file descriptor signals.
///
/// # Errors
/// [`io::ErrorKind::ConnectionAborted`] if the task was dropped.
pub(crate) fn sleep(time: Duration) -> io::Result<()> {
    let end = Instant::now() + time;
    let until_end = Wait {
        fd: -1,
        is_for_write: false,
        deadline: Some(end),
    };
    // An event loop may resume a task early, and a signal ends a poll early.
    while Instant::now() < end {
        if !wait(until_end)? {
            let left = end.saturating_duration_since(Instant::now());
            let _ = poll(&mut [], Timespec::try_from(left).ok().as_ref());
        }
    }
    Ok(())
}

/// A function call that has a separate stack, and that suspends instead of blocking.
pub struct Task<T: 'static> {
    /// The call's stack and state; `None` only after the call has returned.
    coroutine: Option<Coroutine<Resumed, Suspension, T>>,
    fork_generation: u32,
}

impl<T: 'static> Task<T> {
    /// Creates a task that runs `call` at its first resume. The thread that resumes the task first
    /// must also make all further resumes.
    ///
    /// # Errors
    /// The system cannot provide memory for a stack.
    pub fn new(call: impl FnOnce() -> T + Send + 'static) -> io::Result<Task<T>> {
        fork::watch_forks();
        let stack = match STACKS.with_borrow_mut(Vec::pop) {
            Some(stack) => stack,
            None => DefaultStack::new(STACK_BYTES)?,
        };
        let coroutine = Coroutine::with_stack(stack, |suspender: &Suspender, resumed| {
            CURRENT.set(Some(NonNull::from(suspender)));
            // A task that is dropped before its first resume does not run: `Coroutine` drops the
            // call.
            debug_assert!(resumed == Resumed::Ready);
            call()
        });
        Ok(Task {
            coroutine: Some(coroutine),
            fork_generation: fork::generation(),
        })
    }

    /// Runs the call until it has to wait, or to its end. If the call panics, the panic continues
    /// in the caller.
    ///
    /// # Panics
    /// If the call has returned before.
    pub fn resume(&mut self) -> Progress<T> {
        self.resume_as(Resumed::Ready)
    }

    fn resume_as(&mut self, resumed: Resumed) -> Progress<T> {
        /// A guard that restores, when it is dropped, the task that was current on this thread
        /// before this task was resumed. The drop also happens after a panic.
        struct Outer(Option<NonNull<Suspender>>);
        impl Drop for Outer {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        loop {
            let coroutine = self.coroutine.as_mut().expect("the call has returned");
            let outer = Outer(CURRENT.take());
            let ran = coroutine.resume(resumed);
            drop(outer);
            match ran {
                CoroutineResult::Yield(Suspension::Wait(wait)) => return Progress::Waiting(wait),
                CoroutineResult::Yield(Suspension::CallOutside(mut call)) => {
                    // SAFETY: the closure is on the stack of the task, in `call_outside`, which
                    // does not use it while the task is suspended.
                    let call = unsafe { call.as_mut() };
                    call();
                }
                CoroutineResult::Return(value) => {
                    if let Some(coroutine) = self.coroutine.take() {
                        keep(coroutine.into_stack());
                    }
                    return Progress::Done(value);
                }
            }
        }
    }
}

/// Stores the stack of a finished task, which the next task of this thread reuses. At most
/// [`KEPT_STACKS`] stacks are stored per thread; further stacks are freed.
fn keep(stack: DefaultStack) {
    STACKS.with_borrow_mut(|stacks| {
        if stacks.len() < KEPT_STACKS {
            stacks.push(stack);
        }
    });
}

impl<T: 'static> Drop for Task<T> {
    fn drop(&mut self) {
        if self.fork_generation != fork::generation() {
            // The process was forked: the call continues in the parent process, so nothing of it is
            // dropped here.
            std::mem::forget(self.coroutine.take());
            return;
        }
        // Each `wait` of the call fails, so the call returns early and drops its values in order.
        while let Some(coroutine) = &self.coroutine
            && coroutine.started()
            && !coroutine.done()
        {
            let ended = AssertUnwindSafe(|| self.resume_as(Resumed::Abandoned));
            if catch_unwind(ended).is_err() {
                break;
            }
        }
    }
}

impl<T> std::fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

    use super::*;

    fn pause(fd: RawFd) -> io::Result<bool> {
        wait(Wait {
            fd,
            is_for_write: false,
            deadline: None,
        })
    }

    fn fd_of(progress: &Progress<i32>) -> Option<RawFd> {
        match progress {
            Progress::Waiting(wait) => Some(wait.fd),
            Progress::Done(_) => None,
        }
    }

    #[test]
    fn a_call_outside_of_a_task_blocks() {
        assert!(!is_running());
        assert!(!pause(1).expect("no task was dropped"));
    }

    #[test]
    fn tasks_take_turns_and_return() {
        let count = |from: RawFd| {
            move || {
                let mut sum = 0;
                for fd in from..from + 3 {
                    assert!(pause(fd).expect("no task was dropped"));
                    assert!(is_running());
                    sum += fd;
                }
                sum
            }
        };
        let mut tasks = [1, 10].map(|from| Task::new(count(from)).expect("a stack"));
        for i in 0..3 {
            for (task, from) in tasks.iter_mut().zip([1, 10]) {
                assert_eq!(fd_of(&task.resume()), Some(from + i));
                assert!(!is_running());
            }
        }
        let sums = tasks.each_mut().map(|task| match task.resume() {
            Progress::Done(sum) => sum,
            Progress::Waiting(_) => 0,
        });
        assert_eq!(sums, [6, 33]);
    }

    #[test]
    fn a_task_within_a_task_leaves_the_outer_one_running() {
        let mut outer = Task::new(|| {
            let mut inner = Task::new(|| i32::from(pause(1).is_ok())).expect("a stack");
            assert_eq!(fd_of(&inner.resume()), Some(1));
            assert!(is_running());
            assert!(pause(2).expect("no task was dropped"));
            match inner.resume() {
                Progress::Done(value) => value,
                Progress::Waiting(_) => 0,
            }
        })
        .expect("a stack");
        assert_eq!(fd_of(&outer.resume()), Some(2));
        assert!(matches!(outer.resume(), Progress::Done(1)));
    }

    #[test]
    fn the_waits_of_a_dropped_task_fail_and_its_values_are_dropped() {
        let held = Arc::new(());
        let (inside, refused) = (held.clone(), Arc::new(AtomicI32::new(0)));
        let n_refused = refused.clone();
        let mut task = Task::new(move || {
            let _inside = inside;
            while pause(1).is_ok() {}
            n_refused.store(1 + i32::from(pause(1).is_err()), SeqCst);
            0
        })
        .expect("a stack");
        assert_eq!(fd_of(&task.resume()), Some(1));
        drop(task);
        assert_eq!((refused.load(SeqCst), Arc::strong_count(&held)), (2, 1));
        // A task that was never resumed.
        let inside = held.clone();
        drop(Task::new(move || Arc::strong_count(&inside)));
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn a_call_outside_runs_on_the_stack_that_resumes_the_task() {
        let on_stack = || {
            let here = 0_u8;
            std::hint::black_box(&raw const here) as usize
        };
        assert_eq!(call_outside(|| 5), 5);
        let mut task = Task::new(move || {
            let (inside, before) = (on_stack(), call_outside(on_stack));
            assert!(is_running());
            assert!(!call_outside(is_running));
            assert!(pause(1).expect("no task was dropped"));
            let after = call_outside(on_stack);
            i32::from(
                [before, after]
                    .iter()
                    .all(|at| at.abs_diff(inside) > STACK_BYTES),
            )
        })
        .expect("a stack");
        assert_eq!(fd_of(&task.resume()), Some(1));
        assert!(matches!(task.resume(), Progress::Done(1)));
    }

    #[test]
    fn a_call_outside_of_an_inner_task_may_run_in_the_outer_one() {
        let mut outer = Task::new(|| {
            let call = || i32::from(call_outside(|| call_outside(is_running)));
            let mut inner = Task::new(call).expect("a stack");
            match inner.resume() {
                Progress::Done(value) => value,
                Progress::Waiting(_) => 2,
            }
        })
        .expect("a stack");
        assert!(matches!(outer.resume(), Progress::Done(0)));
    }

    #[test]
    fn a_panic_of_a_call_outside_continues_in_the_task() {
        let mut task = Task::new(|| {
            let raised = catch_unwind(|| call_outside(|| panic!("as planned")));
            assert!(is_running());
            i32::from(raised.is_err())
        })
        .expect("a stack");
        assert!(matches!(task.resume(), Progress::Done(1)));
    }

    #[test]
    fn a_dropped_task_may_call_outside() {
        let n_calls = Arc::new(AtomicI32::new(0));
        let counted = n_calls.clone();
        let mut task = Task::new(move || {
            while pause(1).is_ok() {}
            call_outside(|| counted.fetch_add(1, SeqCst))
        })
        .expect("a stack");
        assert_eq!(fd_of(&task.resume()), Some(1));
        drop(task);
        assert_eq!(n_calls.load(SeqCst), 1);
    }

    #[test]
    fn a_panic_is_passed_on() {
        let mut task = Task::new(|| {
            assert!(pause(1).is_err(), "as planned");
            0
        })
        .expect("a stack");
        assert_eq!(fd_of(&task.resume()), Some(1));
        let resumed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.resume()));
        assert!(resumed.is_err());
        assert!(!is_running());
    }
}
