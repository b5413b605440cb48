//! Script of the messages between one writer and one owner: the order of sends and of receives. Both ranks derive it
//! without messages.
//!
//! The writer sends, in this order: one message that any receive may take, some that arrive before their receives
//! ("early"), to the nearest peer more than the eager budget holds ("burst"), the message to begin ("go"), the rest of
//! the burst, and messages of all sizes ("late"). The owner receives the early ones by tag, out of order, and by a
//! wildcard tag, in order.

use rackloom_protocol::operation::messages::EAGER_BYTES_MAX;

use super::super::super::run_view::RunView;

/// Number of unmatched messages that must be allowed for "go" to follow the early messages and the first part of the
/// burst. If fewer are allowed, "go" is sent first.
const OFFERS_FOR_ALL: usize = 28;
/// Length of a message of the burst, in bytes. Sixteen of them are nearly the budget of one sender.
const BURST_BYTES: u64 = 4000;
/// Number of messages of the burst before and after "go".
const BURST_BEFORE: usize = 18;
const BURST_AFTER: usize = 6;
const EARLY_SIZES: [u64; 5] = [0, 1, 255, 1000, EAGER_BYTES_MAX];
const LATE_SIZES: [u64; 10] = [0, 7, 8, 63, 64, 65, 257, 1001, EAGER_BYTES_MAX, EAGER_BYTES_MAX + 1];
/// Length in bytes of the message that any receive may take.
pub(super) const ANY_BYTES: u64 = 48;
/// Bits of a tag that count messages of a kind.
const NUMBER_BITS: u64 = 0xff;

/// Returns the offset of a message's data in the writer's readable region.
pub(super) fn source_offset(view: &RunView, writer: u16, owner: u16, index: usize, bytes: u64) -> u64 {
    view.read_offset_of(owner, writer, index as u16 | 1 << 15, bytes)
}

/// Purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Taken by a receive that names no source.
    Any = 1,
    Early,
    Burst,
    Go,
    Late,
    /// Never sent. A receive for it is cancelled.
    Never,
}

/// Returns the tag of a message of this kind in this round.
pub(super) fn tag(view: &RunView, kind: Kind, number: u64) -> u64 {
    (kind as u64) << 32 | u64::from(view.round) << 8 | number & NUMBER_BITS
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) tag: u64,
    pub(super) bytes: u64,
}

/// One receive, with the index of the message that must match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) index: usize,
    /// Bits of the tag that the receive ignores.
    pub(super) ignore: u64,
}

/// All messages between one writer and one owner in one round.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) messages: Vec<Message>,
    /// Receives after "go", in order of posting.
    pub(super) wanted: Vec<Wanted>,
    /// Index of "go".
    pub(super) go: usize,
}

impl Script {
    /// Returns the script. `is_nearest` is whether the owner is the writer's first peer.
    pub(super) fn new(view: &RunView, is_nearest: bool) -> Self {
        let bytes_max = view.layout.message_bytes_max();
        let message = |kind, number: usize, bytes: u64| Message {
            kind,
            tag: tag(view, kind, number as u64),
            bytes: bytes.min(bytes_max),
        };
        let early = EARLY_SIZES.into_iter().chain((bytes_max > EAGER_BYTES_MAX).then_some(bytes_max));
        let early: Vec<_> =
            early.enumerate().map(|(number, bytes)| message(Kind::Early, number, bytes)).collect();
        // All have one tag, so only their order distinguishes them.
        let burst =
            |count| (0..if is_nearest { count } else { 0 }).map(|_| message(Kind::Burst, 0, BURST_BYTES));
        let late = LATE_SIZES.into_iter().chain([bytes_max]).enumerate();
        let late = late.filter(|(number, _)| is_nearest || number % 3 == 0);

        let any = [message(Kind::Any, 0, ANY_BYTES)];
        let go = [message(Kind::Go, 0, 0)];
        let before: Vec<_> = early.into_iter().chain(burst(BURST_BEFORE)).collect();
        let has_offers_for_all =
            view.settings.offers_max.min(view.settings.outstanding_max) >= OFFERS_FOR_ALL;
        let (first, second) =
            if has_offers_for_all { (&before[..], &go[..]) } else { (&go[..], &before[..]) };
        let mut messages: Vec<_> = any.iter().chain(first).chain(second).copied().collect();
        messages.extend(burst(BURST_AFTER));
        messages.extend(late.map(|(number, bytes)| message(Kind::Late, number, bytes)));
        let go = messages.iter().position(|message| message.kind == Kind::Go).unwrap_or(0);
        Self { wanted: wanted(&messages), messages, go }
    }
}

/// Returns the receives in order of posting. The wildcards match the oldest early message that no other receive has
/// matched.
fn wanted(messages: &[Message]) -> Vec<Wanted> {
    let of = |kind| {
        let found = messages.iter().enumerate().filter(move |(_, message)| message.kind == kind);
        found.map(|(index, _)| index)
    };
    let early: Vec<_> = of(Kind::Early).collect();
    let by_order = [(0, NUMBER_BITS), (4, 0), (2, 0), (1, NUMBER_BITS), (3, NUMBER_BITS), (5, 0)];
    let mut wanted: Vec<_> = by_order
        .into_iter()
        .filter_map(|(number, ignore)| Some(Wanted { index: *early.get(number)?, ignore }))
        .collect();
    wanted.extend(of(Kind::Burst).chain(of(Kind::Late)).map(|index| Wanted { index, ignore: 0 }));
    wanted
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::Tenant;
    use rackloom_protocol::operation::messages::EAGER_BUDGET_BYTES;

    use super::*;
    use crate::litmus::layout::Layout;
    use crate::litmus::settings::LitmusSettings;
    use crate::ranks::Rank;

    fn script(offers_max: usize, bytes_max: u64) -> Script {
        let settings = LitmusSettings { offers_max, bytes_max, ..LitmusSettings::default() };
        let rank = |number| Rank { name: format!("n{number}"), tenant: Tenant(0) };
        let layout = Layout::new(2, &settings).unwrap();
        Script::new(&RunView::new(0, (0..2).map(rank).collect(), layout, settings), true)
    }

    #[test]
    fn every_message_but_two_is_wanted_once() {
        for script in [script(64, 1 << 20), script(2, 1 << 20), script(64, 1)] {
            let mut wanted: Vec<_> = script.wanted.iter().map(|wanted| wanted.index).collect();
            wanted.sort_unstable();
            let is_alone = |index: &usize| ![Kind::Any, Kind::Go].contains(&script.messages[*index].kind);
            let sent: Vec<_> = (0..script.messages.len()).filter(is_alone).collect();
            assert_eq!(wanted, sent);
        }
    }

    #[test]
    fn more_than_the_budget_is_sent_before_the_owner_begins_and_no_more_waits_than_may() {
        let script = script(64, 1 << 20);
        let before = &script.messages[..=script.go];
        assert!(before.iter().map(|message| message.bytes).sum::<u64>() > EAGER_BUDGET_BYTES);
        assert!(before.len() <= OFFERS_FOR_ALL, "{}", before.len());
        assert!(before.iter().any(|message| message.bytes > EAGER_BYTES_MAX));
    }

    #[test]
    fn where_few_may_wait_the_owner_begins_at_once() {
        assert_eq!(script(2, 1 << 20).go, 1);
    }
}
