//! The streams of one remote node, by class. A stream is created when it is first used.
//!
//! Code that only reads a stream gets a blank one in place of a stream that does not exist. It is the stream before
//! its first packet, and all remote nodes share it.

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::endpoint::stream::Stream;
use crate::ids::Class;

/// Streams of one remote node, by class.
#[derive(Debug)]
pub(in crate::endpoint) struct Streams {
    by_class: [Option<Box<Stream>>; Class::COUNT],
    blank: Arc<Stream>,
}

impl Streams {
    /// Returns no streams. `blank` is the stream before its first packet.
    pub(in crate::endpoint) fn new(blank: &Arc<Stream>) -> Self {
        Self { by_class: Default::default(), blank: Arc::clone(blank) }
    }

    /// Returns the stream of a class if it exists.
    #[inline]
    pub(in crate::endpoint) fn get(&self, class: Class) -> Option<&Stream> {
        self.by_class[class.index()].as_deref()
    }

    /// Returns the stream of a class for changes if it exists.
    #[inline]
    pub(in crate::endpoint) fn get_mut(&mut self, class: Class) -> Option<&mut Stream> {
        self.by_class[class.index()].as_deref_mut()
    }

    /// Returns the stream of a class, or a blank one.
    #[inline]
    pub(in crate::endpoint) fn of(&self, class: Class) -> &Stream {
        self.get(class).unwrap_or(&self.blank)
    }

    /// Returns the stream of a class for changes, and creates it on first use.
    #[inline]
    pub(in crate::endpoint) fn of_mut(&mut self, class: Class) -> &mut Stream {
        let Self { by_class, blank } = self;
        by_class[class.index()].get_or_insert_with(|| fresh(blank))
    }

    /// Iterates over the streams that exist.
    pub(in crate::endpoint) fn iter(&self) -> impl Iterator<Item = (Class, &Stream)> {
        let streams = Class::ALL.into_iter().zip(&self.by_class);
        streams.filter_map(|(class, stream)| Some((class, stream.as_deref()?)))
    }

    /// Iterates over the streams that exist, for changes.
    pub(in crate::endpoint) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.by_class.iter_mut().flatten().map(Box::as_mut)
    }
}

#[cold]
fn fresh(blank: &Stream) -> Box<Stream> {
    Box::new(Stream::new(blank.sender.settings()))
}
