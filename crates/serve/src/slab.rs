//! Connections by token.

use std::sync::Arc;

use crate::connection::Connection;

/// A table of connections. A token is a place and the count of its uses, so that a late event for a connection that is
/// gone never reaches the one that took its place.
#[derive(Default)]
pub(crate) struct Slab {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Place {
    n_uses: u32,
    connection: Option<Arc<Connection>>,
}

impl Slab {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Adds the connection that `make` makes of its token.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u64) -> Arc<Connection>) -> Arc<Connection> {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            u32::try_from(self.places.len() - 1).expect("fewer connections than descriptors")
        });
        let place = &mut self.places[at as usize];
        // The highest bit stays clear: those tokens are not connections.
        place.n_uses = (place.n_uses + 1) & 0x7fff_ffff;
        let connection = make(u64::from(place.n_uses) << 32 | u64::from(at));
        place.connection = Some(Arc::clone(&connection));
        connection
    }

    pub(crate) fn get(&self, token: u64) -> Option<&Arc<Connection>> {
        let place = self.places.get((token & 0xffff_ffff) as usize)?;
        place.connection.as_ref().filter(|c| c.token == token)
    }

    /// Takes a connection out; nothing happens if it is gone already.
    pub(crate) fn remove(&mut self, token: u64) {
        if self.get(token).is_some() {
            let at = (token & 0xffff_ffff) as u32;
            self.places[at as usize].connection = None;
            self.free.push(at);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.places.iter().filter_map(|p| p.connection.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Weak;

    #[test]
    fn a_token_of_the_past_finds_nothing() {
        let limits = crate::Limits::default();
        let mut slab = Slab::default();
        let mut insert = || {
            slab.insert(|token| {
                Arc::new(Connection::new(
                    token,
                    Weak::new(),
                    None,
                    None,
                    &limits,
                    false,
                ))
            })
            .token
        };
        let (a, b) = (insert(), insert());
        slab.remove(a);
        slab.remove(a);
        assert_eq!(slab.len(), 1);
        let c = slab
            .insert(|token| {
                Arc::new(Connection::new(
                    token,
                    Weak::new(),
                    None,
                    None,
                    &limits,
                    false,
                ))
            })
            .token;
        assert_eq!(c & 0xffff_ffff, a & 0xffff_ffff, "the place is used again");
        assert!(slab.get(a).is_none());
        assert!(slab.get(b).is_some() && slab.get(c).is_some());
        assert_eq!(slab.iter().count(), 2);
    }
}
