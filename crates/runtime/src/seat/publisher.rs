//! Writer of a seat's status page, for brief statuses that do not wake the seat.
//!
//! It writes when the loop runs anyway, with the reading of the clock that the loop has, and only while the supervisor looks. It wakes the seat never.

use rackloom::seat::status_page::StatusPage;
use rackloom_control::notice::SeatStatus;
use rackloom_control::status_words::{PortFigures, encode, words_of};
use rackloom_protocol::Instant;

/// Least time between two writes of a busy seat, in nanoseconds.
const INTERVAL_NS: u64 = 300_000_000;

/// Writer of one status page.
#[derive(Debug)]
pub(super) struct Publisher {
    page: StatusPage,
    /// Time of the next check whether the supervisor looks.
    due: Instant,
    written_at: Instant,
    words: Vec<u64>,
}

impl Publisher {
    /// Opens the page that the supervisor has created for a seat with this number of ports. Without one, each status is an answer to a request.
    pub(super) fn open(descriptor: Option<i32>, ports: usize) -> Option<Self> {
        let page = StatusPage::from_fd(descriptor?, words_of(ports));
        let page = page.inspect_err(|error| tracing::warn!(%error, "the seat has no status page")).ok()?;
        Some(Self { page, due: Instant::ZERO, written_at: Instant::ZERO, words: Vec::new() })
    }

    /// Returns true if the status must be written now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + INTERVAL_NS;
        self.page.is_wanted(now)
    }

    /// Returns true if the status must be written before a sleep that ends at `until`: it would be old then.
    pub(super) fn precedes_sleep(&self, now: Instant, until: Instant) -> bool {
        self.written_at < now && until.since(now) > INTERVAL_NS && self.page.is_wanted(now)
    }

    /// Writes the status with these ports.
    pub(super) fn write<'a>(
        &mut self,
        now: Instant,
        status: SeatStatus,
        ports: impl Iterator<Item = PortFigures<'a>>,
    ) {
        (self.written_at, self.due) = (now, now + INTERVAL_NS);
        encode(status, ports, &mut self.words);
        self.page.write(&self.words);
    }
}
