//! The credit accounts of one link: counters and stalls of each virtual channel.
//!
//! An account that waits for credits longer than its patience asks the neighbour for its counters: an update may be lost, or the
//! frames that should have freed something. A lost update therefore delays and never stops.

use super::credits::Credits;
use crate::config::{CreditUpdates, PortConfig};
use crate::ids::Channel;
use crate::per_channel::PerChannel;
use crate::time::Instant;

/// Centuries, and yet not never.
const PATIENCE_WITHOUT_CREDITS_NS: u64 = 1 << 62;

/// One channel's counters, and who waits for them.
#[derive(Clone, Debug)]
pub struct Account {
    /// Both directions' counters.
    pub credits: Credits,
    /// The neighbour asked for them.
    is_wanted: bool,
    /// When the neighbour must be asked; never, if no data waits for credits.
    probe_at: Instant,
    /// Credits of the frame that waits, where one does.
    awaited: u32,
}

impl Account {
    #[inline]
    fn consume(&mut self, cost: u32) -> u32 {
        if cost > 0 {
            self.probe_at = Instant::NEVER;
        }
        self.credits.consume(cost)
    }
}

/// All channels' accounts of one link.
#[derive(Clone, Debug)]
pub struct Accounts {
    accounts: PerChannel<Account>,
    patience_ns: u64,
}

impl Accounts {
    /// Everything free, on each of `count` channels.
    #[must_use]
    pub fn new(config: &PortConfig, count: usize, patience_ns: u64) -> Self {
        // Where nothing is held back for credits, nobody waits to hear of them.
        let (updates, patience_ns) = match config.pause {
            Some(_) => (CreditUpdates { spacing: u32::MAX, resync: true }, PATIENCE_WITHOUT_CREDITS_NS),
            None => (config.updates, patience_ns),
        };
        let account = |channel| Account {
            credits: Credits::new(config.credits_of(channel, count), updates),
            is_wanted: false,
            probe_at: Instant::NEVER,
            awaited: 0,
        };
        Self { accounts: PerChannel::new(count, account), patience_ns }
    }

    /// How many channels there are; one, where the channels of the rack share what there is.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.accounts.count()
    }

    /// The counters of a channel.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    #[must_use]
    pub fn credits(&self, channel: Channel) -> &Credits {
        &self.accounts.of(channel).credits
    }

    /// The counters of a channel, to be changed.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    pub fn credits_mut(&mut self, channel: Channel) -> &mut Credits {
        &mut self.accounts.of_mut(channel).credits
    }

    /// The channel under whose name the credits of a channel are kept.
    #[must_use]
    pub const fn kept_under(&self, channel: Channel) -> Channel {
        if self.count() == 1 { Channel(0) } else { channel }
    }

    /// Whether lost frames give their credits back.
    #[must_use]
    pub fn resync(&self) -> bool {
        self.credits(Channel(0)).resyncs()
    }

    /// A frame of this cost leaves: the credits consumed so far. Whoever waited for some has got them.
    #[inline]
    pub fn consume(&mut self, channel: Channel, cost: u32) -> u32 {
        self.accounts.of_mut(channel).consume(cost)
    }

    /// The same for a frame of so many bytes.
    #[inline]
    pub fn consume_bytes(&mut self, channel: Channel, bytes: usize) -> u32 {
        let account = self.accounts.of_mut(channel);
        account.consume(account.credits.cost(bytes))
    }

    /// The neighbour asked for the counters of a channel.
    pub fn want(&mut self, channel: Channel) {
        self.accounts.of_mut(channel).is_wanted = true;
    }

    /// A frame of so many bytes waits for credits of a channel. Returns true when this begins a stall.
    pub fn note_stall(&mut self, now: Instant, channel: Channel, bytes: usize) -> bool {
        let account = self.accounts.of_mut(channel);
        account.awaited = account.credits.cost(bytes);
        let begins = account.probe_at == Instant::NEVER;
        if begins {
            account.probe_at = now + self.patience_ns;
        }
        begins
    }

    /// Credits of the frame that waits for some of the channel; of no meaning where none does.
    #[inline]
    #[must_use]
    pub fn awaited(&self, channel: Channel) -> u32 {
        self.accounts.of(channel).awaited
    }

    /// Whether data waits for credits of the channel.
    #[inline]
    #[must_use]
    pub fn is_stalled(&self, channel: Channel) -> bool {
        self.accounts.of(channel).probe_at != Instant::NEVER
    }

    /// Whether an update of a channel is worth a frame of its own, or was asked for.
    #[inline]
    #[must_use]
    pub fn update_due(&self) -> bool {
        self.accounts.any(|_, account| account.owes_update())
    }

    /// Whether a stall has lasted so long that the neighbour must be asked.
    #[inline]
    #[must_use]
    pub fn probe_due(&self, now: Instant) -> bool {
        self.accounts.any(|_, account| account.probe_due(now))
    }

    /// A credit frame leaves: of which channel, and whether it asks for an answer. `may_update`: it may leave for another reason
    /// than to ask.
    pub fn send(&mut self, now: Instant, may_update: bool) -> (Channel, bool) {
        let is_due = |_, account: &Account| may_update && account.owes_update() || account.probe_due(now);
        let channel = self.accounts.position(is_due).unwrap_or_default();
        let account = self.accounts.of_mut(channel);
        account.is_wanted = false;
        let asks = account.probe_due(now);
        if asks {
            // Whoever waited has gone elsewhere if everything is free; then this probe is the last.
            let is_last = account.credits.is_all_free();
            account.probe_at = if is_last { Instant::NEVER } else { now + self.patience_ns };
        }
        (channel, asks)
    }

    /// When the neighbour must be asked next.
    #[inline]
    #[must_use]
    pub fn probe_at(&self) -> Instant {
        self.accounts.least(|account| account.probe_at)
    }
}

impl Account {
    #[inline]
    fn owes_update(&self) -> bool {
        self.is_wanted || self.credits.update_due()
    }

    #[inline]
    fn probe_due(&self, now: Instant) -> bool {
        now >= self.probe_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CreditConfig;
    use crate::ids::{NodeId, Plane};

    fn accounts() -> Accounts {
        let credits = CreditConfig { unit_bytes: 128, overhead_bytes: 0, limit: 40 };
        let config = PortConfig {
            edge: 0,
            neighbour: NodeId(1),
            plane: Plane(0),
            credits,
            channel_limits: alloc::vec![10, 30],
            updates: credits.usual_updates(),
            retry: None,
            pause: None,
            is_undivided: false,
            is_dateline: false,
        };
        Accounts::new(&config, 2, 100)
    }

    #[test]
    fn one_channel_spends_nothing_of_the_others() {
        let mut accounts = accounts();
        accounts.consume(Channel(0), 10);
        let left = [0, 1].map(|channel| accounts.credits(Channel(channel)).available());
        assert_eq!(left, [0, 30]);
    }

    #[test]
    fn each_channel_asks_for_itself_until_all_of_its_credits_are_free() {
        let mut accounts = accounts();
        accounts.consume(Channel(1), 30);
        assert!(
            accounts.note_stall(Instant(0), Channel(1), 100)
                && !accounts.note_stall(Instant(5), Channel(1), 100)
        );
        assert!(!accounts.is_stalled(Channel(0)) && !accounts.probe_due(Instant(99)));
        assert_eq!(accounts.probe_at(), Instant(100));
        assert_eq!(accounts.send(Instant(100), true), (Channel(1), true));
        assert_eq!(accounts.probe_at(), Instant(200));
        accounts.credits_mut(Channel(1)).hear_freed(30);
        assert_eq!(accounts.send(Instant(200), true), (Channel(1), true));
        assert!(!accounts.is_stalled(Channel(1)), "nothing to wait for");
    }

    #[test]
    fn what_is_wanted_of_a_channel_is_said_once() {
        let mut accounts = accounts();
        accounts.want(Channel(1));
        assert!(accounts.update_due());
        assert_eq!(accounts.send(Instant(0), true), (Channel(1), false));
        assert!(!accounts.update_due());
    }
}
