//! Bodies that an application makes item by item, and the sink that takes the items.

use crate::body::Held;

/// A body that an application makes piece by piece, on a thread of the handlers: it may block.
///
/// It is dropped when its answer has ended, however that was.
pub trait Items: Send {
    /// Makes items and gives them to `sink`, until there are none, or the sink says to stop.
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled;
}

impl Items for std::vec::IntoIter<Held> {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        for item in self {
            match sink.push(item) {
                Pushed::Next => {}
                Pushed::Full => return Pulled::More,
                Pushed::Enough => break,
            }
        }
        Pulled::Done
    }
}

/// The rest of a body that cannot be given: its answer is aborted.
pub struct NoItems;

impl Items for NoItems {
    fn pull(&mut self, _: &mut ItemSink<'_>) -> Pulled {
        Pulled::Failed
    }
}

/// How far [`Items::pull`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// The sink said to stop; there may be more.
    More,
    /// There are no more.
    Done,
    /// It failed, and has reported the failure. The answer is aborted, so that no client takes it for complete.
    Failed,
}

/// What the sink says of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is on its way; the next one may come.
    Next,
    /// It is on its way; the client has to take some of what waits before there is more.
    Full,
    /// Nobody wants more: all that was announced is there, or the client has gone.
    Enough,
}

/// Where [`Items`] go: straight to the socket, many in one system call.
pub struct ItemSink<'a> {
    queue: &'a (dyn ItemQueue + Sync),
    left: Option<u64>,
    /// The client has gone: what was made is not the whole.
    gone: bool,
}

/// The queue of a connection, which takes items while a handler makes them.
pub(crate) trait ItemQueue {
    /// Queues an item, and sends what waits where that is enough.
    fn push(&self, item: Held) -> Queued;
}

/// The state of an [`ItemQueue`] after an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// It takes more.
    Open,
    /// The client has to take some of what waits before there is more.
    Full,
    /// The client has gone.
    ClientGone,
    /// The connection is not with this handler any more.
    Closed,
}

impl<'a> ItemSink<'a> {
    /// A sink of a body of which `left` bytes are to come; `None`: of any length.
    pub(crate) fn new(queue: &'a (dyn ItemQueue + Sync), left: Option<u64>) -> ItemSink<'a> {
        ItemSink {
            queue,
            left,
            gone: false,
        }
    }

    /// Takes an item. Copies: none; it is held until the kernel has it.
    pub fn push(&mut self, mut item: Held) -> Pushed {
        if let Some(left) = &mut self.left {
            item.cut(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= item.len() as u64;
        }
        if self.gone {
            return Pushed::Enough;
        }
        match self.queue.push(item) {
            Queued::Closed => Pushed::Enough,
            Queued::ClientGone => {
                self.gone = true;
                Pushed::Enough
            }
            _ if self.left == Some(0) => Pushed::Enough,
            Queued::Full => Pushed::Full,
            Queued::Open => Pushed::Next,
        }
    }

    /// Bytes that are to come yet.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }

    /// True if the client has gone before it got all.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.gone
    }
}
