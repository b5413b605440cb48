//! Messages between the supervisors of a rack's hosts, as bytes (wire-format section 8).
//!
//! A message is one Ethernet frame to a group address, so that no host needs the address of another. It
//! contains the sender's state of every host, so the state of a host reaches hosts without a link to it. It
//! has its own check, because no core reads it. Every second message is as long as the rack's longest frame,
//! because short frames suffice for links to come up.

#[cfg(test)]
mod fuzz;

use rackloom::seal::{RackKey, TAG_BYTES, Tagger};
use rackloom_plan::Plan;
use rackloom_protocol::wire::check::crc32c;

/// Group address of all supervisors. No member has it.
pub(super) const GROUP: [u8; 6] = [0x03, 0x52, 0x4c, 0xff, 0xff, 0xff];
/// Maximum length of a message of a rack of 256 hosts, in bytes, before padding.
pub(super) const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + ENTRY_BYTES * 256 + CHECK_BYTES + TAG_BYTES;

const MAGIC: [u8; 4] = *b"RLHW";
/// Version of messages without a tag.
pub(super) const VERSION: u8 = 2;
/// Version of messages with a tag.
pub(super) const SEALED_VERSION: u8 = 3;
/// Stage field of an incarnation that no message has confirmed.
const UNCONFIRMED: u8 = 4;
const ETHERNET_BYTES: usize = 14;
const HEADER_BYTES: usize = ETHERNET_BYTES + 16;
const ENTRY_BYTES: usize = 16;
const CHECK_BYTES: usize = 4;
/// Shortest frame that Ethernet carries.
const FRAME_BYTES_MIN: usize = 60;

/// Stage of a host. It never decreases within one incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Its members work, or wait for links.
    #[default]
    Working,
    /// Its members have finished and serve the others.
    Finished,
    /// All hosts have finished, as far as this host knows.
    AllFinished,
    /// It has ended without waiting for the others.
    Gone,
}

/// State of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostState {
    /// Incarnation of its supervisor; zero if unknown. A later one is larger.
    pub(super) incarnation: u64,
    /// Number of messages that the host has sent.
    pub(super) messages: u32,
    pub(super) stage: Stage,
}

/// Identity of the rack, which distinguishes it from others on the segment.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// Hash of the rack's name.
    name: u32,
    pub(super) epoch: u16,
    ether_type: u16,
    /// Keys of the tags of each host's messages; `None` without a key.
    tags: Option<Vec<Tagger>>,
}

/// Freshness of a message. Only a sender that has received a message of the receiver in this run can repeat its incarnation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Proof {
    /// Incarnation and number of the sender.
    pub(super) own: HostState,
    /// Incarnations that the sender has received, by host, confirmed or not.
    pub(super) incarnations: Vec<u64>,
}

/// Received message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostMessage {
    /// Message of this rack.
    Ours {
        /// Index of the sender in the list of hosts.
        sender: usize,
        /// The sender's state of each host; the default value for unconfirmed states.
        states: Vec<HostState>,
        proof: Proof,
        /// Length of the received frame, in bytes.
        frame_bytes: usize,
    },
    /// Message of another rack of this name: index of the sender in its own list, and the difference.
    Other(usize, Difference, Proof),
    /// Message of this rack's name without a valid tag.
    Refused,
    /// Any other frame.
    Foreign,
}

/// Difference of another rack of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The other rack has another configuration, and therefore this epoch.
    Epoch(u16),
    /// The other rack's supervisors use this version of the messages.
    Version(u8),
}

impl Identity {
    pub(super) fn of(plan: &Plan) -> Self {
        // FNV-1a. Any hash on which all builds agree suffices.
        let name = plan
            .name
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self { name, epoch: plan.epoch, ether_type: plan.settings.ether_type, tags: None }
    }

    /// Adds tags to every message, for this number of hosts.
    pub(super) fn sealed(mut self, key: &RackKey, hosts: usize) -> Self {
        self.tags = Some((0..hosts as u16).map(|host| key.messages_of(host)).collect());
        self
    }

    /// Returns the version of the messages of this rack.
    pub(super) const fn version(&self) -> u8 {
        if self.tags.is_some() { SEALED_VERSION } else { VERSION }
    }

    /// Writes a message of `sender`, padded to `frame_bytes`. `candidates`: incarnations that are not
    /// confirmed, by host.
    pub(super) fn write(
        &self,
        sender: usize,
        states: &[HostState],
        candidates: &[u64],
        frame_bytes: usize,
    ) -> Vec<u8> {
        let mut frame = GROUP.to_vec();
        frame.extend([0x02, 0x52, 0x4c, 0xff, (sender >> 8) as u8, sender as u8]);
        frame.extend(self.ether_type.to_be_bytes());
        frame.extend(MAGIC);
        frame.extend([self.version(), states.len() as u8]);
        frame.extend(self.epoch.to_le_bytes());
        frame.extend(self.name.to_le_bytes());
        frame.extend((sender as u16).to_le_bytes());
        frame.extend([0; 2]);
        for (host, HostState { incarnation, messages, stage }) in states.iter().enumerate() {
            let candidate = candidates.get(host).filter(|candidate| *candidate > incarnation);
            let (incarnation, messages, stage) = match candidate {
                Some(candidate) => (candidate, &0, UNCONFIRMED),
                None => (incarnation, messages, *stage as u8),
            };
            frame.extend(incarnation.to_le_bytes());
            frame.extend(messages.to_le_bytes());
            frame.extend([stage, 0, 0, 0]);
        }
        frame.extend(crc32c(&frame).to_le_bytes());
        let tag_bytes = if self.tags.is_some() { TAG_BYTES } else { 0 };
        let frame_bytes = frame_bytes.max(FRAME_BYTES_MIN).saturating_sub(tag_bytes);
        frame.resize(frame.len().max(frame_bytes), 0);
        if let Some(tagger) = self.tags.as_ref().and_then(|tags| tags.get(sender)) {
            let tag = tagger.tag(&[&frame]);
            frame.extend(tag);
        }
        frame
    }

    /// Returns the tagged part of a message; `None` if the tag is not the sender's.
    // W-94
    fn opened<'frame>(&self, frame: &'frame [u8], sender: usize) -> Option<&'frame [u8]> {
        let Some(tags) = &self.tags else { return Some(frame) };
        let (tagged, tag) = frame.split_last_chunk::<TAG_BYTES>()?;
        tags.get(sender).is_some_and(|tagger| tagger.fits(&[tagged], *tag)).then_some(tagged)
    }

    // W-83
    /// Parses a frame. Any bytes are valid input.
    pub(super) fn read(&self, frame: &[u8], hosts: usize) -> HostMessage {
        let Some(header) = frame.get(ETHERNET_BYTES..HEADER_BYTES) else { return HostMessage::Foreign };
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let name = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if !header.starts_with(&MAGIC) || name != self.name {
            return HostMessage::Foreign;
        }
        let (count, epoch, sender) = (usize::from(header[5]), half(6), usize::from(half(12)));
        // W-94: with a key, the fields of a message without a tag are not used.
        let Some(opened) = self.opened(frame, sender) else { return HostMessage::Refused };
        // W-61: the following fields are defined for this version only.
        if header[4] != self.version() {
            return HostMessage::Other(sender, Difference::Version(header[4]), Proof::default());
        }
        // W-60: a flipped bit may be in any field.
        let Some(entries) = checked(opened, HEADER_BYTES + count * ENTRY_BYTES) else {
            return HostMessage::Foreign;
        };
        let entries = entries.chunks_exact(ENTRY_BYTES).map(entry).collect::<Option<Vec<_>>>();
        let incarnations =
            |entries: &[(HostState, bool)]| entries.iter().map(|(state, _)| state.incarnation).collect();
        let proof = |entries: &[(HostState, bool)]| {
            let own = entries.get(sender).map_or_else(HostState::default, |(state, _)| *state);
            Proof { own, incarnations: incarnations(entries) }
        };
        if epoch != self.epoch {
            return HostMessage::Other(sender, Difference::Epoch(epoch), proof(&entries.unwrap_or_default()));
        }
        match entries {
            Some(entries) if entries.len() == hosts && sender < hosts => {
                let proof = proof(&entries);
                let known = |(state, is_confirmed)| if is_confirmed { state } else { HostState::default() };
                let states = entries.into_iter().map(known).collect();
                HostMessage::Ours { sender, states, proof, frame_bytes: frame.len() }
            }
            _ => HostMessage::Foreign,
        }
    }
}

/// Returns the entries of a message whose check, at `end`, is valid.
fn checked(frame: &[u8], end: usize) -> Option<&[u8]> {
    let (covered, rest) = frame.split_at_checked(end)?;
    (*rest.first_chunk()? == crc32c(covered).to_le_bytes()).then(|| &covered[HEADER_BYTES..])
}

/// Returns the state in an entry, and true if it is confirmed.
fn entry(bytes: &[u8]) -> Option<(HostState, bool)> {
    let (incarnation, rest) = bytes.split_first_chunk()?;
    let (messages, rest) = rest.split_first_chunk()?;
    let stage = match rest.first()? {
        0 => Stage::Working,
        1 => Stage::Finished,
        2 => Stage::AllFinished,
        3 => Stage::Gone,
        &UNCONFIRMED => Stage::Working,
        _ => return None,
    };
    let is_confirmed = rest.first() != Some(&UNCONFIRMED);
    Some((
        HostState {
            incarnation: u64::from_le_bytes(*incarnation),
            messages: u32::from_le_bytes(*messages),
            stage,
        },
        is_confirmed,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str, seed: &str) -> Identity {
        let text = format!("name: {name}\nshape: {{ring: {{nodes: 4}}}}\n{seed}");
        Identity::of(&Plan::parse(&text, "rack").unwrap())
    }

    // W-62
    #[test]
    fn a_message_of_any_length_is_read_as_it_was_written() {
        let ours = identity("rack", "");
        let stages = [Stage::Working, Stage::Finished, Stage::AllFinished, Stage::Gone];
        let states: Vec<_> =
            stages.map(|stage| HostState { incarnation: 1 << 60, messages: 70_000, stage }).to_vec();
        for (wanted_bytes, frame_bytes) in [(0, HEADER_BYTES + 4 * ENTRY_BYTES + CHECK_BYTES), (9014, 9014)] {
            let frame = ours.write(2, &states, &[], wanted_bytes);
            let proof = Proof { own: states[2], incarnations: vec![1 << 60; 4] };
            assert_eq!(
                ours.read(&frame, 4),
                HostMessage::Ours { sender: 2, states: states.clone(), proof, frame_bytes }
            );
            assert_eq!(ours.read(&frame, 3), HostMessage::Foreign);
        }
        assert_eq!(ours.write(0, &[], &[], 0).len(), FRAME_BYTES_MIN);
    }

    // W-61, W-83
    #[test]
    fn differences_of_configuration_and_version_are_reported_for_a_rack_of_this_name_only() {
        let (ours, other) = (identity("rack", ""), identity("rack", "ring_bytes: 64KiB\n"));
        let mut theirs = other.write(1, &[HostState::default(); 2], &[], 0);
        assert_eq!(
            ours.read(&theirs, 2),
            HostMessage::Other(
                1,
                Difference::Epoch(other.epoch),
                Proof { incarnations: vec![0; 2], ..Proof::default() }
            )
        );
        assert_eq!(identity("racks", "").read(&theirs, 2), HostMessage::Foreign);
        theirs[ETHERNET_BYTES + MAGIC.len()] = VERSION + 1;
        assert_eq!(
            ours.read(&theirs, 2),
            HostMessage::Other(1, Difference::Version(VERSION + 1), Proof::default())
        );
        assert_eq!(identity("racks", "").read(&theirs, 2), HostMessage::Foreign);
    }

    // W-60
    #[test]
    fn a_message_with_a_flipped_bit_is_not_used() {
        let ours = identity("rack", "");
        let frame =
            ours.write(1, &[HostState { incarnation: 7, messages: 1, stage: Stage::Finished }; 2], &[], 0);
        let end = HEADER_BYTES + 2 * ENTRY_BYTES + CHECK_BYTES;
        for length in 0..end {
            assert_eq!(ours.read(&frame[..length], 2), HostMessage::Foreign, "{length}");
        }
        for bit in 0..end * 8 {
            let mut torn = frame.clone();
            torn[bit / 8] ^= 1 << (bit % 8);
            let received = ours.read(&torn, 2);
            let is_version = bit / 8 == ETHERNET_BYTES + MAGIC.len();
            assert!(
                received == HostMessage::Foreign || is_version && matches!(received, HostMessage::Other(..)),
                "{bit}: {received:?}"
            );
        }
    }

    // W-94
    #[test]
    fn with_a_key_only_messages_with_the_senders_tag_are_used() {
        let key = RackKey::of_secret(&[7; 32]);
        let (plain, ours) = (identity("rack", ""), identity("rack", "").sealed(&key, 2));
        let states = [HostState { incarnation: 7, messages: 1, stage: Stage::Finished }; 2];
        for wanted_bytes in [0, 4256] {
            let frame = ours.write(1, &states, &[9, 0], wanted_bytes);
            assert_eq!(
                frame.len(),
                wanted_bytes.max(HEADER_BYTES + 2 * ENTRY_BYTES + CHECK_BYTES + TAG_BYTES)
            );
            let HostMessage::Ours { sender: 1, states: read, proof, .. } = ours.read(&frame, 2) else {
                panic!("{:?}", ours.read(&frame, 2))
            };
            assert_eq!(
                (read, proof.own, proof.incarnations),
                (vec![HostState::default(), states[1]], states[1], vec![9, 7])
            );
            for bit in 0..frame.len() * 8 {
                let mut torn = frame.clone();
                torn[bit / 8] ^= 1 << (bit % 8);
                // A change of the group address, the rack's name or the magic makes it a message of another
                // rack.
                assert!(matches!(ours.read(&torn, 2), HostMessage::Refused | HostMessage::Foreign), "{bit}");
            }
            let of_another = identity("rack", "").sealed(&RackKey::of_secret(&[8; 32]), 2);
            assert_eq!(of_another.read(&frame, 2), HostMessage::Refused);
            assert!(matches!(
                plain.read(&frame, 2),
                HostMessage::Other(1, Difference::Version(SEALED_VERSION), _)
            ));
        }
        assert_eq!(ours.read(&plain.write(1, &states, &[], 0), 2), HostMessage::Refused);
    }
}
