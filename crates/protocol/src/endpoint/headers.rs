//! Headers of the last frames of a stream: the next frame is predicted from one, and the next header is written from one.
//!
//! They are stored separately, on first use: a short stream has none
//! ([`is_short`](crate::transport::settings::is_short)).

use alloc::boxed::Box;

use crate::forwarding::forwarder::Trust;
use crate::ids::PortId;
use crate::wire::header_prediction::{FixedFields, Template};

/// Checked header of one stream, valid while the settings that the checks depend on do not change.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct KnownHeader {
    pub header: FixedFields,
    pub port: PortId,
    pub trust: Trust,
}

/// Headers of the last frames, if there are any.
#[derive(Debug, Default)]
pub(in crate::endpoint) struct Headers(Option<Box<Last>>);

#[derive(Debug, Default)]
struct Last {
    /// Checked header of the last received frame. Frames like it need no full check.
    known: Option<KnownHeader>,
    /// Header of the last sent frame, and the port through which it left.
    template: Option<(PortId, Template)>,
}

impl Headers {
    /// Returns the checked header of the last received frame.
    #[inline]
    pub(in crate::endpoint) fn known(&self) -> Option<&KnownHeader> {
        self.0.as_ref()?.known.as_ref()
    }

    /// Returns the template of the next header through this port.
    #[inline]
    pub(in crate::endpoint) fn template(&self, port: PortId) -> Option<&Template> {
        let (through, template) = self.0.as_ref()?.template.as_ref()?;
        (*through == port).then_some(template)
    }

    /// Stores the checked header of a received frame, or none if the next frame needs a full check.
    pub(in crate::endpoint) fn set_known(&mut self, known: Option<KnownHeader>) {
        if self.0.is_some() || known.is_some() {
            self.0.get_or_insert_default().known = known;
        }
    }

    /// Stores the header of a sent frame and its port, or none if it is no template.
    pub(in crate::endpoint) fn set_template(&mut self, template: Option<(PortId, Template)>) {
        if self.0.is_some() || template.is_some() {
            self.0.get_or_insert_default().template = template;
        }
    }
}
