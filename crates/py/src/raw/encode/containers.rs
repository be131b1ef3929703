//! The loop over the open containers of an encoder. The inner loop over members stops if it needs
//! space, or cannot write a member. This loop then does the work, and continues.

use onecopy_text::Pen;
use onecopy_text::convert::Kernels;
use pyo3::ffi;

use super::builtin_types::ObjectKind;
use super::dict;
use super::format::MemberEncoder;
use super::frames::{ContainerForm, ContainerFrame};
use super::members::{ExitReason, container, write_fields, write_members};
use super::sorted::SortedMembers;

/// Writes the remaining members of all open containers.
///
/// # Safety
/// The caller must hold the GIL during the call, and a reference to the root. The frames must be
/// those of the root.
#[inline(always)]
pub(super) unsafe fn run<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
    kernels: K,
    encoder: &mut F,
    mut pen: Pen<'s>,
) -> Result<Pen<'s>, F::Stop> {
    // `true` if space was reserved for a member that was not read yet.
    let mut is_due = false;
    loop {
        let interruption = &mut encoder.shared().interruption;
        let (value, start) = (interruption.value, interruption.start);
        match std::mem::replace(&mut interruption.reason, ExitReason::Done) {
            ExitReason::Done => {}
            ExitReason::Space => {
                pen = encoder.grow(pen)?;
                is_due = true;
            }
            ExitReason::Key => {
                // SAFETY: the innermost frame was interrupted before this key.
                pen = unsafe { encoder.any_key(kernels, pen)? };
                is_due = false;
                continue;
            }
            ExitReason::Slow(kind) | ExitReason::Large(kind) => {
                // SAFETY: alive, because no code has run since the value was found.
                pen = unsafe { encoder.any_value(kernels, value, kind, start, pen)? };
                continue;
            }
        }
        let Some(frame) = encoder.shared().frames.last_mut() else {
            return Ok(pen);
        };
        let mut has_members = frame.at > 0;
        let frame: *mut ContainerFrame = frame;
        // SAFETY: the innermost frame does not move until another is pushed. Its object is alive:
        // the encoder takes references before code runs.
        unsafe {
            if !is_at_end(encoder, frame)? {
                has_members = true;
                pen = resume(kernels, encoder, frame, pen)?;
                is_due = false;
                if encoder.shared().interruption.reason != ExitReason::Done {
                    continue;
                }
            }
        }
        pen = encoder.leave(frame, has_members, is_due, pen)?;
        is_due = false;
        if encoder.shared().frames.pop() {
            encoder.shared().forget();
        }
    }
}

/// Writes the members of a container. If it stops early, it pushes frames for the remaining
/// members.
///
/// # Safety
/// Same as [`MemberEncoder::any_value`]. The depth must allow another level.
#[inline(always)]
pub(super) unsafe fn enter<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
    kernels: K,
    encoder: &mut F,
    value: *mut ffi::PyObject,
    kind: ObjectKind,
    tag: *mut u8,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let levels = encoder.levels();
    let frames = &mut encoder.shared().frames;
    let (n_frames, at) = (frames.len(), frames.last_mut().map_or(0, |frame| frame.at));
    // SAFETY: as the caller guarantees.
    pen = unsafe { container(kernels, encoder, value, kind, tag, at, levels, pen) };
    encoder.shared().settle(n_frames);
    if encoder.shared().interruption.reason == ExitReason::Done {
        encoder.after_member(&mut pen);
    }
    pen
}

/// Returns `true` if all members of the innermost container are written.
///
/// # Errors
/// An error if Python code has changed the container.
///
/// # Safety
/// `frame` must be the innermost frame.
#[inline(always)]
unsafe fn is_at_end<'py, F: MemberEncoder<'py>>(
    encoder: &mut F,
    frame: *mut ContainerFrame,
) -> Result<bool, F::Stop> {
    // SAFETY: the innermost frame, as the caller guarantees.
    let inner = unsafe { &*frame };
    let (container, form, n) = (inner.object, inner.form, inner.n);
    let mut at = inner.at;
    Ok(match form {
        ContainerForm::List | ContainerForm::Tuple | ContainerForm::Pairs => {
            // SAFETY: alive, with this number of items.
            at >= unsafe { ffi::Py_SIZE(container) }
        }
        // SAFETY: alive, a `dict`.
        ContainerForm::Dict => unsafe {
            if dict::len(container) != n {
                return Err(F::changed());
            }
            dict::entries(container).next(container, &mut at).is_none()
        },
        ContainerForm::SortedDict => {
            let recent = &mut encoder.shared().recent_order;
            // SAFETY: alive, a `dict`; the order was cleared before code ran.
            if unsafe { SortedMembers::of_unchanged(container, inner.start, recent) }.is_none() {
                return Err(F::changed());
            }
            at >= n
        }
        ContainerForm::Fields => {
            let private = encoder.writes_private_fields();
            let fields = encoder.shared().classes[n.cast_unsigned()].fields();
            fields.is_none_or(|fields| fields.next_name(private, &mut at).is_none())
        }
        ContainerForm::Held => true,
        // SAFETY: the innermost frame.
        ContainerForm::Rows | ContainerForm::Row | ContainerForm::Columns => unsafe {
            encoder.are_rows_written(frame)?
        },
    })
}

/// Writes the next members of the innermost open container.
///
/// # Errors
/// Same as [`MemberEncoder::any_key`].
///
/// # Safety
/// `frame` must be the innermost frame, with members left to write.
#[inline(always)]
unsafe fn resume<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
    kernels: K,
    encoder: &mut F,
    frame: *mut ContainerFrame,
    mut pen: Pen<'s>,
) -> Result<Pen<'s>, F::Stop> {
    // SAFETY: the innermost frame, as the caller guarantees.
    let inner = unsafe { &*frame };
    let (container, form, n) = (inner.object, inner.form, inner.n);
    let at = inner.at;
    let n_frames = encoder.shared().frames.len();
    match form {
        ContainerForm::Rows | ContainerForm::Row | ContainerForm::Columns => {
            // SAFETY: the innermost frame.
            pen = unsafe { encoder.resume_rows(kernels, frame, pen)? };
        }
        ContainerForm::Fields => {
            let class = encoder.shared().classes[n.cast_unsigned()].clone();
            // SAFETY: the frame's object is alive.
            let is_of_it = unsafe { class.is_of(container) };
            let Some(fields) = class.fields().filter(|_| is_of_it) else {
                encoder.interrupt(ExitReason::Key, std::ptr::null_mut(), at, pen.at());
                return Ok(pen);
            };
            let levels = encoder.levels();
            // SAFETY: alive, and of the class of these fields.
            pen = unsafe { write_fields(kernels, encoder, container, fields, at, levels, pen) };
        }
        form => {
            let levels = encoder.levels();
            // SAFETY: alive, and of this form.
            pen = unsafe { write_members(kernels, encoder, container, form, at, levels, pen) };
        }
    }
    encoder.shared().settle(n_frames);
    Ok(pen)
}
