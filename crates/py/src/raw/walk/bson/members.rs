//! The loop over the members of documents and arrays.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::bson::Tag;
use pyo3::ffi;

use super::super::frames::{Form, Frame};
use super::super::object::Kind;
use super::super::{ahead, dict, object};
use super::index::Index;
use super::step::{short_key, step};
use super::{ROOM, Stop, Walk};

/// Walks and writes.
///
/// # Safety
/// Attached as long as the walk lives; the caller holds `root`.
#[inline(always)]
pub(super) unsafe fn run<K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    root: *mut ffi::PyObject,
) -> Result<(), Stop> {
    let mut pen = walk.open(ROOM)?;
    walk.start = walk.offset(&pen);
    // SAFETY: the root is alive, and what is reached from it as long as no Python code runs; where some does, the walk takes
    // references to all that it is inside of, and each container is read anew.
    unsafe {
        pen = walk.any_value(kernels, root, 0, pen)?;
        'members: loop {
            let is_kept = walk.frames.len() > 1;
            let Some(frame) = walk.frames.last_mut() else {
                let n_bytes = walk.offset(&pen) - walk.start;
                walk.close(&pen);
                if n_bytes > walk.style.max_size {
                    return Err(Stop::TooLong);
                }
                return Ok(());
            };
            let frame: *mut _ = frame;
            let (container, form) = ((*frame).object, (*frame).form);
            match form {
                Form::List | Form::Tuple => {
                    let items = object::items(container, form == Form::List);
                    let mut at = (*frame).at.unsigned_abs();
                    // Of an array the digits of the next key stand where others have how many members there were.
                    let mut index = Index::of((*frame).n as u64);
                    while at < items.len() {
                        if pen.room() < ROOM {
                            (*frame).at = at as isize;
                            pen = walk.grow(pen, ROOM)?;
                        }
                        let member = items[at];
                        ahead::fetch_object(items, at);
                        let tag = pen.at();
                        index.put(at, &mut pen);
                        at += 1;
                        let Some(kind) = step(kernels, walk, member, tag, &mut pen) else {
                            continue;
                        };
                        ahead::fetch_rows(items, at);
                        (*frame).at = at as isize;
                        (*frame).n = index.digits() as isize;
                        if kind == Kind::Dict && dict::len(member) != 0 {
                            tag.write(Tag::Document.byte());
                            walk.enter_dict(member, &mut pen)?;
                            continue 'members;
                        }
                        let n_behind = pen.at() as usize - tag as usize;
                        pen = walk.value(kernels, member, kind, n_behind, pen)?;
                        continue 'members;
                    }
                    (*frame).at = at as isize;
                }
                Form::Dict => {
                    if dict::len(container) != (*frame).n {
                        return Err(Stop::Changed);
                    }
                    let entries = dict::entries(container);
                    let next = |at: &mut isize| entries.next(container, at);
                    let (left, is_end) = pairs(kernels, walk, frame, is_kept, pen, next)?;
                    pen = left;
                    if !is_end {
                        continue 'members;
                    }
                }
                Form::Fields => {
                    let class = walk.classes[(*frame).n.unsigned_abs()].clone();
                    let Some(fields) = class.fields() else {
                        return Err(Stop::Changed);
                    };
                    let is_of_it = class.is_of(container);
                    let next = |at: &mut isize| match is_of_it {
                        true => fields.next(container, true, at),
                        false => Some((fields.next_name(true, at)?, std::ptr::null_mut())),
                    };
                    let (left, is_end) = pairs(kernels, walk, frame, is_kept, pen, next)?;
                    pen = left;
                    if !is_end {
                        continue 'members;
                    }
                }
                Form::Pairs => {
                    let at = (*frame).at.unsigned_abs();
                    // The list is ours alone: it and its items stay, whatever runs.
                    if let Some(&[key, member]) = object::items(container, true).get(at..at + 2) {
                        (*frame).at += 2;
                        pen = walk.room(pen, ROOM)?;
                        pen = walk.any_member(kernels, key, member, false, pen)?;
                        continue 'members;
                    }
                }
                Form::Held => {
                    // The length of code with its scope, which counts all of it.
                    if let Some(start) = (*frame).start.checked_sub(1) {
                        let n_bytes = walk.offset(&pen) - start;
                        walk.patch(start, n_bytes, &pen)?;
                    }
                    walk.style.check_keys |= (*frame).n != 0;
                    if walk.frames.pop() {
                        walk.keys.forget();
                    }
                    continue 'members;
                }
                // Of JSON alone.
                Form::Rows | Form::Row | Form::Columns => return Err(Stop::Changed),
            }
            pen = leave(walk, (*frame).start, pen)?;
        }
    }
}

/// The end of the innermost container, which begins at `start`.
#[inline(always)]
fn leave<'s>(walk: &mut Walk<'_, '_>, start: usize, mut pen: Pen<'s>) -> Result<Pen<'s>, Stop> {
    pen = walk.room(pen, ROOM)?;
    pen.put_byte(0);
    let n_bytes = walk.offset(&pen) - start;
    walk.patch(start, n_bytes, &pen)?;
    if walk.frames.pop() {
        walk.keys.forget();
    }
    Ok(pen)
}

/// Writes the keys and values of the innermost container, from where it was left, up to one that takes more than a few instructions;
/// whether that was the last. The value of a key may be null: it is the name of an attribute, which is looked up.
///
/// # Safety
/// `frame` is the innermost one. `next` returns what is alive as long as no code runs, and moves the position that it gets.
#[inline(always)]
unsafe fn pairs<'s, K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    frame: *mut Frame,
    is_kept: bool,
    mut pen: Pen<'s>,
    next: impl Fn(&mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)>,
) -> Result<(Pen<'s>, bool), Stop> {
    // SAFETY: alive, by the caller's word, as long as no code runs; the frame stays where it is until one is pushed.
    unsafe {
        let mut at = (*frame).at;
        while let Some((key, mut member)) = next(&mut at) {
            pen = walk.room(pen, ROOM)?;
            if member.is_null() {
                (*frame).at = at;
                (pen, member) = walk.attribute((*frame).object, key, pen)?;
                pen = walk.any_member(kernels, key, member, false, pen)?;
                return Ok((pen, false));
            }
            let tag = pen.at();
            if !short_key(kernels, walk, key, is_kept, &mut pen) {
                (*frame).at = at;
                pen = walk.any_member(kernels, key, member, is_kept, pen)?;
                return Ok((pen, false));
            }
            let Some(kind) = step(kernels, walk, member, tag, &mut pen) else {
                continue;
            };
            (*frame).at = at;
            if kind == Kind::Dict && dict::len(member) != 0 {
                if (*frame).form == Form::Dict {
                    ahead::fetch_tables(dict::entries((*frame).object), at);
                }
                tag.write(Tag::Document.byte());
                walk.enter_dict(member, &mut pen)?;
                return Ok((pen, false));
            }
            let n_behind = pen.at() as usize - tag as usize;
            pen = walk.value(kernels, member, kind, n_behind, pen)?;
            return Ok((pen, false));
        }
    }
    Ok((pen, true))
}
