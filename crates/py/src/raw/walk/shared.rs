//! The state that the encoders of all formats share.

use std::rc::Rc;

use pyo3::prelude::*;

use super::classes::Class;
use super::frames::{self, Frames};
use super::keys::Keys;
use super::members::{Interruption, Reason};
use super::native::Recent;
use super::step::Step;

/// The state of an encoder of any format, except its pen.
pub(super) struct Shared<'py> {
    pub(super) frames: Frames<'py>,
    pub(super) keys: Keys,
    /// The point at which the loop over the members was left.
    pub(super) interruption: Interruption,
    /// Classes and zones found since code last ran.
    pub(super) recent: Recent,
    /// The class of the dataclass that is to be entered next; valid until code runs.
    pub(super) found: *const Class,
    /// How to go on with the last object that was not written.
    pub(super) unwritten: Step,
    /// Classes of the frames of fields.
    pub(super) classes: Vec<Rc<Class>>,
}

impl<'py> Shared<'py> {
    #[inline(always)]
    pub(super) fn new(py: Python<'py>) -> Shared<'py> {
        Shared {
            frames: Frames::new(py),
            keys: Keys::new(),
            interruption: Interruption::NONE,
            recent: Recent::NONE,
            found: std::ptr::null(),
            unwritten: Step::Done,
            classes: Vec::new(),
        }
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.frames.py()
    }

    /// To be called before any Python code runs.
    pub(super) fn before_code(&mut self) {
        self.frames.own();
        self.keys.forget();
        self.recent = Recent::NONE;
        self.found = std::ptr::null();
    }

    /// Brings the frames in order that were pushed since there were `n`, and notes how far the one
    /// before them is gone through.
    #[inline(always)]
    pub(super) fn settle(&mut self, n: usize) {
        if self.interruption.reason != Reason::Done {
            self.frames.settle(n, self.interruption.at);
        }
    }

    /// The index of a class among those of the frames.
    pub(super) fn index_of_class(&mut self, class: Rc<Class>) -> isize {
        frames::index_of_class(&mut self.classes, class)
    }

    /// The path to the value that is being written.
    pub(super) fn path(&self) -> String {
        let mut path = String::from("$");
        for frame in self.frames.iter() {
            // SAFETY: attached, and each frame's object is alive: borrowed from what holds it, or ours.
            unsafe { frames::append_step(self.py(), frame, &self.classes, &mut path) };
        }
        path
    }
}
