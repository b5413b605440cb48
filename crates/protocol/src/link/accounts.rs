//! Credit accounts of one link: the counters and stalls of each virtual channel.
//!
//! An account that waits for credits longer than its timeout requests the neighbour's counters, because a credit
//! update, or the frames that would have freed credits, may have been lost. A lost update therefore delays data but
//! never stops it.

use super::credits::Credits;
use crate::config::{CreditUpdates, PortConfig};
use crate::ids::Channel;
use crate::per_channel::PerChannel;
use crate::time::Instant;

/// Longer than any run; it can still be added to an `Instant` without overflow.
const PROBE_NEVER_NS: u64 = 1 << 62;

/// Counters of one channel, and the frame that waits for its credits.
#[derive(Clone, Debug)]
pub struct Account {
    /// Counters of both directions.
    pub credits: Credits,
    /// True if the neighbour requested these counters and no frame has carried them since.
    is_requested: bool,
    /// Time at which to request the neighbour's counters; `Instant::NEVER` if no data waits for credits.
    probe_at: Instant,
    /// Credits that the waiting frame needs. It has no meaning while `probe_at` is `Instant::NEVER`.
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

/// Accounts of all channels of one link.
#[derive(Clone, Debug)]
pub struct Accounts {
    accounts: PerChannel<Account>,
    probe_after_ns: u64,
}

impl Accounts {
    /// Returns accounts for `count` channels with all credits free.
    #[must_use]
    pub fn new(config: &PortConfig, count: usize, probe_after_ns: u64) -> Self {
        // With pauses, data never waits for credits, so no updates are needed.
        let (updates, probe_after_ns) = match config.pause {
            Some(_) => (CreditUpdates { spacing: u32::MAX, resync: true }, PROBE_NEVER_NS),
            None => (config.updates, probe_after_ns),
        };
        let account = |channel| Account {
            credits: Credits::new(config.credits_of(channel, count), updates),
            is_requested: false,
            probe_at: Instant::NEVER,
            awaited: 0,
        };
        Self { accounts: PerChannel::new(count, account), probe_after_ns }
    }

    /// Number of accounts. It is 1 if all channels of the rack share the buffers.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.accounts.count()
    }

    /// Returns the counters of a channel.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    #[must_use]
    pub fn credits(&self, channel: Channel) -> &Credits {
        &self.accounts.of(channel).credits
    }

    /// Returns the counters of a channel for changes.
    ///
    /// # Panics
    /// If the link has no such channel.
    #[inline]
    pub fn credits_mut(&mut self, channel: Channel) -> &mut Credits {
        &mut self.accounts.of_mut(channel).credits
    }

    /// Returns the channel that keeps the credits of `channel`.
    #[must_use]
    pub const fn kept_under(&self, channel: Channel) -> Channel {
        if self.count() == 1 { Channel(0) } else { channel }
    }

    /// Returns true if lost frames give their credits back.
    #[must_use]
    pub fn resync(&self) -> bool {
        self.credits(Channel(0)).resyncs()
    }

    /// Consumes credits for a frame of this cost, which ends a stall. Returns the credits consumed so far.
    #[inline]
    pub fn consume(&mut self, channel: Channel, cost: u32) -> u32 {
        self.accounts.of_mut(channel).consume(cost)
    }

    /// Consumes credits for a frame of `bytes`. Returns the credits consumed so far.
    #[inline]
    pub fn consume_bytes(&mut self, channel: Channel, bytes: usize) -> u32 {
        let account = self.accounts.of_mut(channel);
        account.consume(account.credits.cost(bytes))
    }

    /// Records that the neighbour requested the counters of a channel.
    pub fn request(&mut self, channel: Channel) {
        self.accounts.of_mut(channel).is_requested = true;
    }

    /// Records that a frame of `bytes` waits for credits of a channel. Returns true if this begins a stall.
    pub fn note_stall(&mut self, now: Instant, channel: Channel, bytes: usize) -> bool {
        let account = self.accounts.of_mut(channel);
        account.awaited = account.credits.cost(bytes);
        assert!(account.awaited > 0, "a frame that costs nothing waits for credits");
        let begins = account.probe_at == Instant::NEVER;
        if begins {
            account.probe_at = now + self.probe_after_ns;
        }
        begins
    }

    /// Returns the credits that the waiting frame of a channel needs. The value has no meaning if no frame waits.
    #[inline]
    #[must_use]
    pub fn awaited(&self, channel: Channel) -> u32 {
        self.accounts.of(channel).awaited
    }

    /// Returns true if data waits for credits of the channel.
    #[inline]
    #[must_use]
    pub fn is_stalled(&self, channel: Channel) -> bool {
        self.accounts.of(channel).probe_at != Instant::NEVER
    }

    /// Returns true if a channel has freed enough credits for a credit frame, or the neighbour requested one.
    #[inline]
    #[must_use]
    pub fn update_due(&self) -> bool {
        self.accounts.any(|_, account| account.has_update_due())
    }

    /// Returns true if a stall has lasted so long that the neighbour's counters must be requested.
    #[inline]
    #[must_use]
    pub fn probe_due(&self, now: Instant) -> bool {
        self.accounts.any(|_, account| account.probe_due(now))
    }

    /// Chooses the channel of the credit frame that leaves now. Returns it, and true if the frame must request an
    /// answer. `may_update` allows a frame that requests nothing.
    pub fn send(&mut self, now: Instant, may_update: bool) -> (Channel, bool) {
        let is_due = |_, account: &Account| may_update && account.has_update_due() || account.probe_due(now);
        let channel = self.accounts.position(is_due).unwrap_or_default();
        let account = self.accounts.of_mut(channel);
        account.is_requested = false;
        let requests_answer = account.probe_due(now);
        if requests_answer {
            // If all credits are free, the waiting frame took another path, and this request is the last.
            let is_last = account.credits.is_all_free();
            account.probe_at = if is_last { Instant::NEVER } else { now + self.probe_after_ns };
        }
        (channel, requests_answer)
    }

    /// Returns the time at which the neighbour's counters must be requested.
    #[inline]
    #[must_use]
    pub fn probe_at(&self) -> Instant {
        self.accounts.least(|account| account.probe_at)
    }
}

impl Account {
    #[inline]
    fn has_update_due(&self) -> bool {
        self.is_requested || self.credits.update_due()
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
            dimension: 0,
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
    fn a_channel_uses_no_credits_of_the_others() {
        let mut accounts = accounts();
        accounts.consume(Channel(0), 10);
        let left = [0, 1].map(|channel| accounts.credits(Channel(channel)).available());
        assert_eq!(left, [0, 30]);
    }

    #[test]
    fn each_channel_requests_credits_until_all_of_its_own_are_free() {
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
        accounts.credits_mut(Channel(1)).update_freed(30);
        assert_eq!(accounts.send(Instant(200), true), (Channel(1), true));
        assert!(!accounts.is_stalled(Channel(1)), "nothing to wait for");
    }

    #[test]
    fn a_request_of_a_channel_is_answered_once() {
        let mut accounts = accounts();
        accounts.request(Channel(1));
        assert!(accounts.update_due());
        assert_eq!(accounts.send(Instant(0), true), (Channel(1), false));
        assert!(!accounts.update_due());
    }
}
