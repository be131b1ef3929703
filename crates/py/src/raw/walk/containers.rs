//! The loop over the containers that an encoder is inside of: it resumes each where the loop over
//! its members was interrupted.

use onecopy_text::Pen;
use onecopy_text::convert::Kernels;
use pyo3::ffi;

use super::dict;
use super::format::Format;
use super::frames::{Form, Frame};
use super::members::{Reason, write_fields, write_members};

/// Writes the rest of all containers that have frames, after the first of them was entered or interrupted.
///
/// # Safety
/// Attached as long as the encoder lives; the caller holds the root, and the frames are those of it.
#[inline(always)]
pub(super) unsafe fn run<'py, 's, K: Kernels, F: Format<'py>>(
    kernels: K,
    encoder: &mut F,
    mut pen: Pen<'s>,
) -> Result<Pen<'s>, F::Stop> {
    // True if space was made for a member that is yet to be read.
    let mut is_due = false;
    // SAFETY: the root is alive, and what is reached from it as long as no code runs; before any
    // runs, the encoder takes references to all that it is inside of, and each container is read
    // anew.
    unsafe {
        loop {
            let interruption = &mut encoder.shared().interruption;
            let (value, start) = (interruption.value, interruption.start);
            match std::mem::replace(&mut interruption.reason, Reason::Done) {
                Reason::Done => {}
                Reason::Space => {
                    pen = encoder.grow(pen)?;
                    is_due = true;
                }
                Reason::Key => {
                    pen = encoder.any_key(kernels, pen)?;
                    is_due = false;
                    continue;
                }
                Reason::Slow(kind) | Reason::Large(kind) => {
                    pen = encoder.any_value(kernels, value, kind, start, pen)?;
                    continue;
                }
            }
            let Some(frame) = encoder.shared().frames.last_mut() else {
                return Ok(pen);
            };
            let frame: *mut Frame = frame;
            let mut has_members = (*frame).at > 0;
            if !is_at_end(encoder, frame)? {
                has_members = true;
                pen = resume(kernels, encoder, frame, pen)?;
                is_due = false;
                if encoder.shared().interruption.reason != Reason::Done {
                    continue;
                }
            }
            pen = encoder.leave(frame, has_members, is_due, pen)?;
            is_due = false;
            if encoder.shared().frames.pop() {
                encoder.shared().keys.forget();
            }
        }
    }
}

/// Returns whether all members of the innermost container are written.
///
/// # Errors
/// If the container was changed.
///
/// # Safety
/// `frame` is the innermost one.
#[inline(always)]
unsafe fn is_at_end<'py, F: Format<'py>>(
    encoder: &mut F,
    frame: *mut Frame,
) -> Result<bool, F::Stop> {
    // SAFETY: the frame's object is alive.
    unsafe {
        let (container, at) = ((*frame).object, (*frame).at);
        Ok(match (*frame).form {
            Form::List | Form::Tuple | Form::Pairs => at >= ffi::Py_SIZE(container),
            Form::Dict => {
                if dict::len(container) != (*frame).n {
                    return Err(F::changed());
                }
                let mut at = at;
                dict::entries(container).next(container, &mut at).is_none()
            }
            Form::Fields => {
                let private = encoder.writes_private_fields();
                let class = &encoder.shared().classes[(*frame).n.cast_unsigned()];
                let mut at = at;
                let fields = class.fields();
                fields.is_none_or(|fields| fields.next_name(private, &mut at).is_none())
            }
            Form::Held => true,
            Form::Rows | Form::Row | Form::Columns => encoder.are_rows_written(frame)?,
        })
    }
}

/// Goes on with the members of the innermost container, to its end or to where that is interrupted.
///
/// # Errors
/// As [`Format::any_key`].
///
/// # Safety
/// `frame` is the innermost one, and has members that are not written.
#[inline(always)]
unsafe fn resume<'py, 's, K: Kernels, F: Format<'py>>(
    kernels: K,
    encoder: &mut F,
    frame: *mut Frame,
    mut pen: Pen<'s>,
) -> Result<Pen<'s>, F::Stop> {
    // SAFETY: the frame's object is alive, and of this form.
    unsafe {
        let (container, form, at) = ((*frame).object, (*frame).form, (*frame).at);
        let n_frames = encoder.shared().frames.len();
        match form {
            Form::Rows | Form::Row | Form::Columns => {
                pen = encoder.resume_rows(kernels, frame, pen)?;
            }
            Form::Fields => {
                let class = encoder.shared().classes[(*frame).n.cast_unsigned()].clone();
                let Some(fields) = class.fields().filter(|_| class.is_of(container)) else {
                    encoder.interrupt(Reason::Key, std::ptr::null_mut(), at, pen.at());
                    return Ok(pen);
                };
                let levels = encoder.levels();
                pen = write_fields(kernels, encoder, container, fields, at, levels, pen);
            }
            form => {
                let levels = encoder.levels();
                pen = write_members(kernels, encoder, container, form, at, levels, pen);
            }
        }
        encoder.shared().settle(n_frames);
    }
    Ok(pen)
}
