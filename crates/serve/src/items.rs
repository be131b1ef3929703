//! [`Items`]: a response body that an application produces item by item. [`ItemSink`]: the receiver
//! of the items.

use crate::body::SharedBytes;

/// A response body that an application produces item by item. Its methods run on one of the
/// server's handler threads, and may block.
///
/// The value is dropped when its response has ended for any reason.
pub trait Items: Send {
    /// Produces items and passes them to `sink`. Returns when there are no more items, or when
    /// [`ItemSink::push`] returns [`Pushed::Full`] or [`Pushed::Enough`].
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled;
}

impl Items for std::vec::IntoIter<SharedBytes> {
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

/// A body that produces no item and always fails, so that its response is aborted.
pub struct NoItems;

impl Items for NoItems {
    fn pull(&mut self, _: &mut ItemSink<'_>) -> Pulled {
        Pulled::Failed
    }
}

/// The result of [`Items::pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// The body may have more items, but [`ItemSink::push`] has reported that the sink is full.
    More,
    /// The body has no more items.
    Done,
    /// The application failed, and has logged the failure itself. The server aborts the response,
    /// so that the client detects that it is incomplete.
    Failed,
}

/// The result of [`ItemSink::push`], which determines whether the application may push another
/// item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The item was queued, and the application may push the next item immediately.
    Next,
    /// The item is queued. The application may push the next item only after the client has read
    /// some of the queued bytes.
    Full,
    /// No more items are needed. Either all announced bytes are queued, or the client has
    /// disconnected.
    Enough,
}

/// The destination to which [`Items::pull`] pushes the items of a body. The items are collected, so
/// that one system call sends many of them to the client.
pub struct ItemSink<'a> {
    queue: &'a (dyn ItemQueue + Sync),
    left: Option<u64>,
    /// `true` if the client disconnected before the body was complete.
    gone: bool,
}

/// The output queue of a connection, to which a handler adds items while it produces them.
pub(crate) trait ItemQueue {
    /// Adds an item to the queue. If the queue then has 64 KiB or more, sends the queued bytes.
    fn push(&self, item: SharedBytes) -> Queued;
}

/// The result of [`ItemQueue::push`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// The queue accepts more items.
    Open,
    /// The client must read some of the queued bytes before the next item is queued.
    Full,
    /// The client has disconnected.
    ClientGone,
    /// The handler may no longer write to the connection, so the item was not queued.
    Closed,
}

impl<'a> ItemSink<'a> {
    /// Creates the sink for the items of one response body. `left` is the announced length of the
    /// body minus the bytes that are already queued; `None` if no length was announced.
    pub(crate) fn new(queue: &'a (dyn ItemQueue + Sync), left: Option<u64>) -> ItemSink<'a> {
        ItemSink {
            queue,
            left,
            gone: false,
        }
    }

    /// Queues an item without copying it. The item stays in memory until the kernel has accepted
    /// its bytes.
    pub fn push(&mut self, mut item: SharedBytes) -> Pushed {
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

    /// Returns the length that the application announced for the body, minus the number of bytes
    /// that are already queued. Returns `None` if the application announced no length.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }

    /// Returns `true` if the client disconnected before it received the complete body.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.gone
    }
}
