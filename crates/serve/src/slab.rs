//! [`Slab`]: a table of values, each identified by a token.

use std::sync::Arc;

/// A table of shared values, each identified by a token. The token consists of the value's index
/// and the number of times that this index was used. Therefore, if an event for a removed value
/// arrives late, its token differs from that of a later value with the same index.
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    n_uses: u32,
    value: Option<Arc<T>>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Calls `make` with a new token, adds the value that `make` returns to the table under this
    /// token, and returns the value.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u64) -> Arc<T>) -> Arc<T> {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                n_uses: 0,
                value: None,
            });
            u32::try_from(self.slots.len() - 1).expect("fewer values than descriptors")
        });
        let slot = &mut self.slots[at as usize];
        // The highest bit is never set, because the tokens of the listener, of the wake-up and of
        // timers have this bit set.
        slot.n_uses = (slot.n_uses + 1) & 0x7fff_ffff;
        let value = make(u64::from(slot.n_uses) << 32 | u64::from(at));
        slot.value = Some(Arc::clone(&value));
        value
    }

    pub(crate) fn get(&self, token: u64) -> Option<&Arc<T>> {
        let slot = self.slots.get((token & 0xffff_ffff) as usize)?;
        let is_current = u64::from(slot.n_uses) == token >> 32;
        slot.value.as_ref().filter(|_| is_current)
    }

    /// Removes the value that `token` identifies. Has no effect if it was already removed.
    pub(crate) fn remove(&mut self, token: u64) {
        if self.get(token).is_some() {
            let at = (token & 0xffff_ffff) as u32;
            self.slots[at as usize].value = None;
            self.free.push(at);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_the_past_finds_nothing() {
        let mut slab = Slab::default();
        let a = *slab.insert(Arc::new);
        let b = *slab.insert(Arc::new);
        slab.remove(a);
        slab.remove(a);
        assert_eq!(slab.len(), 1);
        let c = *slab.insert(Arc::new);
        assert_eq!(c & 0xffff_ffff, a & 0xffff_ffff, "the slot is used again");
        assert!(slab.get(a).is_none());
        assert_eq!(slab.get(b).map(|value| **value), Some(b));
        assert_eq!(slab.get(c).map(|value| **value), Some(c));
        assert_eq!(slab.iter().count(), 2);
    }
}
