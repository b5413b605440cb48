//! Status page of a seat, at the supervisor's end.
//!
//! A page serves brief statuses without a message to the seat. It is used only if it is recent, and only after an answer of the same process, which
//! has the texts that a page lacks. In all other cases the seat is sent a request.

use std::io;
use std::os::fd::OwnedFd;

use rackloom::Clock;
use rackloom::seat::status_page::StatusPage;
use rackloom_control::notice::SeatStatus;
use rackloom_control::status_words::{decode, words_of};

/// Greatest age of a page that is used. A member writes at most every 300 ms, and wakes for heartbeats meanwhile.
const AGE_MAX_NS: u64 = 600_000_000;

/// Status page of one seat.
#[derive(Debug)]
pub(crate) struct SeatPage {
    page: StatusPage,
    /// Links of the member, by port.
    edges: Vec<u16>,
}

impl SeatPage {
    /// Creates a page for a member with these links. Returns it with its file, for the process of the member.
    pub(crate) fn create(edges: Vec<u16>) -> io::Result<(Self, OwnedFd)> {
        let (page, file) = StatusPage::create(words_of(edges.len()))?;
        Ok((Self { page, edges }, file))
    }

    /// Notes a look, and returns the brief status on the page; `None` if the seat must be sent a request. `earlier`: latest answer of the process.
    /// `words`: buffer.
    pub(crate) fn look(
        &self,
        clock: &Clock,
        earlier: Option<&SeatStatus>,
        words: &mut Vec<u64>,
    ) -> Option<SeatStatus> {
        self.page.note_look(clock.now());
        let earlier = earlier?;
        let status = self.page.read(words).then(|| decode(words, &self.edges, earlier)).flatten()?;
        // The member reads the same clock. A time that has not come is wrong.
        let age_ns = clock.now().0.checked_sub(status.at_ns)?;
        (age_ns <= AGE_MAX_NS).then_some(status)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd as _;

    use rackloom_control::report::PortReport;
    use rackloom_control::status_words::{PortFigures, encode};
    use rackloom_protocol::link::counters::PortCounters;

    use super::*;

    fn status(at_ns: u64) -> SeatStatus {
        let ports = vec![PortReport { edge: 4, frames_sent: 7, ..PortReport::default() }];
        SeatStatus { links_up: 1, at_ns, ports, ..SeatStatus::default() }
    }

    /// Returns a page, and the same page as the member has it.
    fn both() -> (SeatPage, StatusPage) {
        let (page, file) = SeatPage::create(vec![4]).expect("a page");
        (page, StatusPage::from_fd(file.into_raw_fd(), words_of(1)).expect("the inherited page"))
    }

    fn words(at_ns: u64) -> Vec<u64> {
        let counters = PortCounters { frames_sent: 7, ..PortCounters::default() };
        let port = PortFigures {
            edge: 4,
            is_down: false,
            counters: &counters,
            injected_drops: 0,
            device_drops: Default::default(),
        };
        let mut words = Vec::new();
        encode(status(at_ns), [port], &mut words);
        words
    }

    /// Returns a clock that began this long ago.
    fn clock(age_ns: u64) -> Clock {
        Clock::with_origin(Clock::begin().origin_ns() - age_ns)
    }

    #[test]
    fn a_recent_page_is_a_status_and_an_old_one_is_none() {
        let ((page, member), clock) = (both(), clock(10_000_000_000));
        let earlier = SeatStatus::default();
        let look = || page.look(&clock, Some(&earlier), &mut Vec::new());
        assert_eq!(look(), None, "a page that was never written");
        let now_ns = clock.now().0;
        member.write(&words(now_ns));
        assert_eq!(look(), Some(status(now_ns)));
        member.write(&words(now_ns - AGE_MAX_NS));
        assert_eq!(look(), None, "a stopped member");
        member.write(&words(now_ns + 3_600_000_000_000));
        assert_eq!(look(), None, "a time that has not come");
    }

    #[test]
    fn a_page_needs_an_answer_of_the_same_process() {
        let ((page, member), clock) = (both(), clock(10_000_000_000));
        member.write(&words(clock.now().0));
        assert_eq!(page.look(&clock, None, &mut Vec::new()), None);
    }

    #[test]
    fn a_look_is_seen_by_the_member() {
        let ((page, member), clock) = (both(), clock(10_000_000_000));
        assert!(!member.is_wanted(clock.now()));
        assert_eq!(page.look(&clock, None, &mut Vec::new()), None);
        assert!(member.is_wanted(clock.now()));
    }

    #[test]
    fn words_of_a_broken_member_are_no_status() {
        let ((page, member), clock) = (both(), clock(10_000_000_000));
        let mut words = words(clock.now().0);
        let look = |words: &[u64]| {
            member.write(words);
            page.look(&clock, Some(&SeatStatus::default()), &mut Vec::new())
        };
        assert!(look(&words).is_some());
        assert_eq!(look(&vec![u64::MAX; words.len()]), None);
        words[0] += 1;
        assert_eq!(look(&words), None, "another version");
    }
}
