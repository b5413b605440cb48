//! Traffic of links, from two samples of their counters.

use rackloom_jobs::report::LinkReport;

use crate::control::request::{LinkRate, RackStatus, Rates};

/// Returns the traffic between two statuses of a rack. `None` if no time passed, or if the links are not the same.
pub(super) fn between(earlier: &RackStatus, later: &RackStatus) -> Option<Rates> {
    let interval_ns = later.uptime_ns.checked_sub(earlier.uptime_ns).filter(|ns| *ns > 0)?;
    let is_same = earlier.links.len() == later.links.len() && earlier.pid == later.pid;
    let pairs = earlier.links.iter().zip(&later.links);
    is_same.then(|| Rates { interval_ns, links: pairs.map(|(from, to)| rate(from, to, interval_ns)).collect() })
}

fn rate(from: &LinkReport, to: &LinkReport, interval_ns: u64) -> LinkRate {
    // A member that began anew counts from zero again.
    let per_s = |from: u64, to: u64| {
        let more = u128::from(to.saturating_sub(from));
        u64::try_from(more * 1_000_000_000 / u128::from(interval_ns)).unwrap_or(u64::MAX)
    };
    let dropped = |link: &LinkReport| link.dropped.values().sum::<u64>();
    LinkRate {
        name: to.name.clone(),
        frames_per_s: per_s(from.frames, to.frames),
        bytes_per_s: per_s(from.bytes_on_wire, to.bytes_on_wire),
        retransmitted_per_s: per_s(from.retransmitted, to.retransmitted),
        dropped_per_s: per_s(dropped(from), dropped(to)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(uptime_ns: u64, frames: u64, bytes: u64, dropped: u64) -> RackStatus {
        let link = json!({"name": "n0->n1", "frames": frames, "bytes_on_wire": bytes, "retransmitted": frames / 10,
            "dropped": {"injected": dropped, "hop-check": 1}});
        let status = json!({"protocol": 1, "name": "r", "pid": 1, "state": "up", "wire": "udp", "job": "none", "epoch": 1,
            "config_hash": "", "uptime_ns": uptime_ns, "links_up": 1, "links_total": 1, "members": [], "links": [link]});
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn rates_are_differences_over_time() {
        let rates = between(&status(1_000, 10, 100, 1), &status(500_001_000, 110, 2_100, 5)).expect("time has passed");
        assert_eq!(rates.interval_ns, 500_000_000);
        let rate = &rates.links[0];
        assert_eq!((rate.frames_per_s, rate.bytes_per_s), (200, 4_000));
        assert_eq!((rate.retransmitted_per_s, rate.dropped_per_s), (20, 8));
    }

    #[test]
    fn a_member_that_began_anew_has_no_negative_rate() {
        let rates = between(&status(1, 10, 100, 1), &status(2, 5, 50, 0)).expect("time has passed");
        assert_eq!((rates.links[0].frames_per_s, rates.links[0].dropped_per_s), (0, 0));
    }

    #[test]
    fn without_time_there_is_no_rate() {
        assert_eq!(between(&status(5, 1, 1, 0), &status(5, 2, 2, 0)), None);
    }
}
