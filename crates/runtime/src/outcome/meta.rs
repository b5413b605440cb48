//! The `meta` object of a report: command line, options in effect, date, host and versions.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rackloom_jobs::report::{HostReport, Meta, Versions};
use rackloom_plan::{CollectivePlan, JobKind, LinkProfile, Plan, Sweep, TrafficPlan};
use rackloom_protocol::RetransmissionMode;
use rackloom_protocol::wire::layout;

/// Function that reads one probability of a link.
type Share = fn(&LinkProfile) -> f64;

const SECONDS_PER_DAY: u64 = 86_400;

/// Release of this crate.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Commit from which this crate was built, or `unknown`.
pub const COMMIT: &str = env!("RACKLOOM_COMMIT");

/// Returns the text of `rackloom --version` behind the name of the program, such as `0.2.0 (commit 1a2b3c4d5e6f, wire format 7)`.
///
/// Members of one rack must agree about the wire format, and a report names the commit.
#[must_use]
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{RELEASE} (commit {COMMIT}, wire format {})", layout::VERSION));
    &VERSION
}

/// Returns the `meta` object of a report about `plan`. `command` is the command line that started the run.
#[must_use]
pub fn of(plan: &Plan, command: &str) -> Meta {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Meta {
        rack: plan.name.clone(),
        command: command.to_owned(),
        options: options(plan),
        date: rfc_3339(since_epoch.as_secs()),
        host: host(),
        versions: Versions { rackloom: RELEASE.to_owned(), wire: u32::from(layout::VERSION) },
        commit: COMMIT.to_owned(),
    }
}

fn options(plan: &Plan) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    let mut set = |key: &str, value: String| drop(options.insert(key.to_owned(), value));
    let has_retry = plan.links.iter().any(|link| link.profile.llr.is_some());
    let transport = match plan.transport.mode {
        RetransmissionMode::GoBackN => "go-back-n",
        RetransmissionMode::Selective => "selective",
    };
    set("seed", plan.settings.seed.to_string());
    set("wire", plan.settings.wire.name().to_owned());
    set("force-wire", plan.settings.force_wire.to_string());
    set("transport", transport.to_owned());
    set("llr", if has_retry { "on" } else { "off" }.to_owned());
    let shares: [(&str, Share); 4] = [
        ("loss", |profile| profile.loss),
        ("corrupt", |profile| profile.corrupt),
        ("duplicate", |profile| profile.duplicate),
        ("reorder", |profile| profile.reorder),
    ];
    for (key, share) in shares {
        let mut values: Vec<_> = plan.links.iter().map(|link| share(&link.profile).to_string()).collect();
        values.dedup();
        set(key, if values.len() == 1 { values.remove(0) } else { "differs by link".to_owned() });
    }
    set("payload", plan.settings.payload.name().to_owned());
    set("job", plan.job.kind.name().to_owned());
    match &plan.job.kind {
        JobKind::Collective(collective) => {
            let CollectivePlan { collective: name, algorithm, adapt, op, element, on_loss, root, .. } =
                collective;
            set("collective", name.name().to_owned());
            set("algorithm", algorithm.to_string());
            set("adapt", if *adapt { "on" } else { "off" }.to_owned());
            set("on-loss", on_loss.name().to_owned());
            if name.reduces() {
                set("op", op.name().to_owned());
            }
            if name.moves_data() {
                set("type", element.name().to_owned());
            }
            if name.has_root() {
                set("root", plan.members[root.index()].name.clone());
            }
        }
        JobKind::Traffic(TrafficPlan { pattern, bytes, messages }) => {
            set("pattern", pattern.name().to_owned());
            set("bytes", bytes.to_string());
            set("messages", messages.to_string());
        }
        JobKind::Litmus | JobKind::Latency(_) | JobKind::Bandwidth(_) | JobKind::None => {}
    }
    if let Some(Sweep { sizes, repetitions, warm_up }) = plan.job.kind.sweep() {
        set("sizes", format!("{}..{}*{}", sizes.from_bytes, sizes.to_bytes, sizes.factor));
        set("repetitions", repetitions.to_string());
        set("warm-up", warm_up.to_string());
    }
    options
}

fn host() -> HostReport {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    HostReport {
        name: text(system.nodename()),
        kernel: format!("{} {} {}", text(system.sysname()), text(system.release()), text(system.machine())),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
    }
}

/// Formats a time, in seconds since 1970, as RFC 3339 in UTC.
fn rfc_3339(seconds: u64) -> String {
    let (days, of_day) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let Date { year, month, day } = civil(days);
    let (hours, minutes, seconds) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

/// Date of the Gregorian calendar. The first month and the first day are 1.
struct Date {
    year: u64,
    month: usize,
    day: u64,
}

/// Returns the date from days since 1970.
fn civil(mut days: u64) -> Date {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    loop {
        let length = 365 + u64::from(is_leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    Date { year, month: month + 1, day: days + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(rfc_3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc_3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc_3339(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(rfc_3339(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
