//! Checks links: profiles, credits, and rings.

use std::sync::LazyLock;

use rackloom_protocol::{CHANNELS_MAX, CreditConfig, NodeId};

use crate::check::inspection::Inspection;
use crate::check::{own_channels, own_credits, pause, retry};
use crate::model::bounds::MILLISECOND_NS;
use crate::model::links::headers::wire_bytes;
use crate::model::links::link::{LinkPlan, LinkProfile};
use crate::model::links::of_link::OwnChannels;
use crate::model::links::wire::{Checks, WireKind};
use crate::model::plan::Plan;
use crate::model::times::timing::ForwardingMode;
use crate::read::mistake::Complaint;

use crate::setting::quantity::{PROBABILITY_HINT, Unit, shown};

/// Largest sum of all rings of a rack, in bytes.
const RINGS_BYTES_MAX: u64 = 64 << 30;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;
/// Step of the least rate that a hint names: 1 kbit/s.
const RATE_STEP: u64 = 1_000;

pub(super) fn check(check: &mut Inspection<'_>) {
    for link in &check.plan.links {
        profile(check, link);
    }
    cut_through(check);
    let count = check.plan.links.len() as u64;
    let bytes = count * 2 * u64::from(check.plan.settings.ring_bytes);
    if check.plan.settings.wire.has_rings() && check.intact(&["ring_bytes"]) && bytes > RINGS_BYTES_MAX {
        let message = format!(
            "{count} links with a ring of {} in each direction take {}, more than {}",
            shown(check.plan.settings.ring_bytes.into(), Unit::Bytes),
            shown(bytes, Unit::Bytes),
            shown(RINGS_BYTES_MAX, Unit::Bytes)
        );
        check.complain(&["ring_bytes", "shape"], Complaint::about(message).hint("make `ring_bytes` smaller"));
    }
}

fn profile(check: &mut Inspection<'_>, link: &LinkPlan) {
    // Path of the value: the link's own entry, else the profile of all links.
    let path_of = |check: &Inspection<'_>, key: &str| {
        let own = format!("links.{}.{key}", link.name);
        if check.positions.first_written(&[&own]).is_some() { own } else { format!("link.{key}") }
    };
    let profile = &link.profile;
    let faults = [
        ("loss", profile.loss),
        ("bit_error_rate", profile.bit_error_rate),
        ("corrupt", profile.corrupt),
        ("duplicate", profile.duplicate),
        ("reorder", profile.reorder),
    ];
    for (key, rate) in faults {
        let path = path_of(check, key);
        if check.intact(&[&path]) && !(0.0..=1.0).contains(&rate) {
            let message = format!("`{path}` is {rate}, no probability");
            check.complain(&[&path], Complaint::about(message).hint(PROBABILITY_HINT));
        }
    }
    medium(check, link);
    check.ranges(profile, &|check, key| path_of(check, key));
    heartbeats(check, link, &path_of(check, "rate"));
    own_channels::check(check, link, &path_of);
    own_credits::check(check, link, &path_of);
    retry::check(check, link, &path_of);
    pause::check(check, link, &path_of);
    if check.plan.settings.checks == Checks::Never && profile.corrupt > 0.0 {
        let path = path_of(check, "corrupt");
        let message = format!("`{path}` flips bits and `checks: never` looks for none");
        let hint = "leave `checks` at `auto`, or take the corruption out";
        check.complain(&[&path, "checks"], Complaint::about(message).hint(hint));
    }
}

/// A heartbeat waits behind a frame that is on the link. If the largest one takes so long that the neighbour misses all heartbeats, a link
/// without a fault is lost under load.
fn heartbeats(check: &mut Inspection<'_>, link: &LinkPlan, path: &str) {
    let plan = check.plan;
    let (frame, interval, misses) =
        ("frame_bytes_max", "timers.heartbeat_interval", "timers.heartbeat_miss_max");
    let Some(rate) = link.profile.rate_bits_per_s else { return };
    if !check.intact(&[path, frame, interval, misses]) {
        return;
    }
    let bits = 8 * wire_bytes(plan.settings.frame_bytes_max.into()) as u64;
    let taken_ns = (bits * SECOND_NS).div_ceil(rate);
    // One interval passes before the heartbeat that waits.
    let waits = u64::from(plan.timers.heartbeat_miss_max).saturating_sub(1).max(1);
    let wait_ns = plan.timers.heartbeat_interval_ns.saturating_mul(waits);
    if taken_ns > wait_ns {
        let least = (bits * SECOND_NS).div_ceil(wait_ns).next_multiple_of(RATE_STEP);
        let message = format!(
            "`{path}` is {}: the largest frame takes {}, and a link without heartbeats for longer than {} is lost",
            shown(rate, Unit::BitsPerSecond),
            shown(taken_ns / MILLISECOND_NS * MILLISECOND_NS, Unit::Nanoseconds),
            shown(wait_ns / MILLISECOND_NS * MILLISECOND_NS, Unit::Nanoseconds)
        );
        let hint = format!(
            "write `{}` at least, a larger `{interval}`, or a smaller `{frame}`",
            shown(least, Unit::BitsPerSecond)
        );
        check.complain(&[path, interval, frame], Complaint::about(message).hint(hint));
    }
}

/// A bridge is part of the kernel, so its links need real interfaces, all on one machine.
pub(super) fn bridges(check: &mut Inspection<'_>) {
    let plan = check.plan;
    const SWITCH: &str = "shape.star.switch";
    if !plan.has_bridges() || !check.intact(&["shape", SWITCH]) {
        return;
    }
    if plan.settings.wire != WireKind::Packet && check.intact(&["wire"]) {
        let message =
            format!("`switch: bridge` needs the packet wire, and the rack has {}", plan.settings.wire.name());
        let hint = "a bridge joins real interfaces: write `wire: packet`, or `switch: member`";
        check.complain(&[SWITCH, "wire"], Complaint::about(message).hint(hint));
    }
    if !plan.hosts.is_empty() {
        let message = "a bridge of one machine cannot join several `hosts`";
        let hint =
            "interfaces at a switch of the network are a star already: write `shape: {full-mesh: ...}`";
        check.complain(&[SWITCH, "hosts"], Complaint::about(message).hint(hint));
    }
}

/// The medium of a cable has no effect without its length.
fn medium(check: &mut Inspection<'_>, link: &LinkPlan) {
    let own = format!("links.{}.medium", link.name);
    let path = if check.positions.find(&own).is_some() { own } else { "link.medium".to_owned() };
    // This is skipped for all links if the file has no medium, because a full mesh has very many links.
    if check.positions.find(&path).is_none() {
        return;
    }
    let has_length = match path.as_str() {
        "link.medium" => check.plan.links.iter().any(|link| link.profile.length_mm.is_some()),
        _ => link.profile.length_mm.is_some(),
    };
    if !has_length && check.intact(&[&path, "link.length"]) {
        let message = format!("`{path}` means nothing: the cable has no `length`");
        check.complain(&[&path], Complaint::about(message).hint("add a line like `length: 3m`"));
    }
}

/// A frame that is forwarded while it arrives must not be sent faster than it arrives.
fn cut_through(check: &mut Inspection<'_>) {
    let plan = check.plan;
    if plan.forwarding.mode != ForwardingMode::CutThrough {
        return;
    }
    let graph = plan.graph();
    for (index, member) in plan.members.iter().enumerate() {
        let ports = graph.ports(NodeId(index as u16));
        let mut links = ports.iter().map(|port| &plan.links[usize::from(port.edge)]);
        let Some(first) = links.next() else { continue };
        let Some(other) = links.find(|link| link.profile.rate_bits_per_s != first.profile.rate_bits_per_s)
        else {
            continue;
        };
        let message = format!(
            "{} cannot pass frames on while they come in: its links {} and {} have different rates",
            member.name, first.name, other.name
        );
        let hint = "write `forwarding: {mode: store-and-forward}`, or the same `rate` for both";
        check.complain(&["forwarding.mode"], Complaint::about(message).hint(hint));
    }
}

/// Links without credits of their own have equal credits in every shape.
pub(super) fn credits(check: &mut Inspection<'_>) {
    let plan = check.plan;
    let whole = plan.credit_choice.resolve(plan.settings.wire, plan.settings.ring_bytes);
    let shares = plan.links_per_interface();
    let credits = CreditConfig { limit: whole.limit / shares, ..whole };
    let paths =
        ["credits.limit", "credits.unit_bytes", "credits.overhead_bytes", "ring_bytes", "frame_bytes_max"];
    check.ranges_of(&plan.credit_choice);
    if !check.intact(&paths) {
        return;
    }
    credits_for_frames(check, whole, shares, &paths);
    let each = plan.channels.least_share(usual(plan), credits.limit);
    updates(check, CreditConfig { limit: each, ..credits });
    let bytes = u64::from(credits.limit) * u64::from(credits.unit_bytes);
    let most = u64::from(plan.settings.ring_bytes) / 4 * 3;
    if plan.settings.wire.has_rings() && bytes > most {
        let message = format!(
            "credits for {bytes} bytes leave less than a quarter of a ring of {} for control frames",
            shown(plan.settings.ring_bytes.into(), Unit::Bytes)
        );
        let hint = format!("write `credits.limit` of at most {}", most / u64::from(credits.unit_bytes));
        check.complain(&paths, Complaint::about(message).hint(hint));
    }
}

/// Returns a link without credits of its own, a divided one if there is any. If all links have their own, returns a default one.
fn usual(plan: &Plan) -> &LinkProfile {
    static NOTHING_OWN: LazyLock<LinkProfile> = LazyLock::new(LinkProfile::default);
    let others = || plan.links.iter().map(|link| &link.profile).filter(|own| own.credits.limit.is_none());
    let is_usual = |own: &&LinkProfile| own.channels == OwnChannels::default();
    others().find(is_usual).or_else(|| others().next()).unwrap_or(&NOTHING_OWN)
}

/// Every channel must hold a largest frame, or two if a bubble must remain: a member sends its own frame only if one
/// more would still fit.
fn credits_for_frames(check: &mut Inspection<'_>, whole: CreditConfig, shares: u32, paths: &[&str]) {
    let plan = check.plan;
    let (frames, in_words) = if plan.forwarding.bubble { (2, "two frames") } else { (1, "one frame") };
    let least = frames * whole.cost(usize::from(plan.settings.frame_bytes_max));
    let limit = whole.limit / shares;
    let each = plan.channels.least_share(usual(plan), limit);
    let count = plan.channels.count_of(usual(plan)) as u64;
    let limits = plan.channels.limits_of(usual(plan));
    let together: u64 = limits.iter().map(|limit| u64::from(*limit)).sum();
    if together > u64::from(limit) {
        let message =
            format!("the `limits` of the channels are {together} credits together, and a link has {limit}");
        let hint = "lower them, or raise `credits.limit`";
        check.complain(&["channels.limits"], Complaint::about(message).hint(hint));
    }
    // Too many channels are reported separately.
    if each >= least || count > CHANNELS_MAX as u64 || !check.intact(&["channels.limits"]) {
        return;
    }
    let (unit, frame) = (whole.unit_bytes.into(), plan.settings.frame_bytes_max.into());
    let (unit, frame) = (shown(unit, Unit::Bytes), shown(frame, Unit::Bytes));
    let needed = u64::from(least) * u64::from(shares) * count;
    let divided = match (plan.has_bridges(), count) {
        (true, _) => format!(" divided among the {shares} links of an interface"),
        (false, 1) => String::new(),
        (false, _) => format!(" for each of {count} channels"),
    };
    let (message, hint) = if plan.has_bridges() {
        (
            format!(
                "{} credits of {unit}{divided} are {each} for each, which hold fewer than {in_words} of {frame}",
                whole.limit
            ),
            format!(
                "a link needs at least {}: raise `credits.limit` to {needed}, lower `frame_bytes_max`, or name fewer nodes",
                u64::from(least) * count
            ),
        )
    } else {
        (
            format!("{each} credits of {unit}{divided} hold fewer than {in_words} of {frame}"),
            format!("a link needs at least {needed}: raise `credits.limit` or `ring_bytes`"),
        )
    };
    check.complain(paths, Complaint::about(message).hint(hint));
}

/// Updates must arrive in time, and counters must be wide enough for the limit.
fn updates(check: &mut Inspection<'_>, credits: CreditConfig) {
    const SPACING: &str = "credits.update_spacing";
    const BITS: &str = "credits.counter_bits";
    let choice = check.plan.credit_choice;
    let capacity = u64::from(credits.limit) * u64::from(credits.unit_bytes);
    if let Some(spacing) = choice.update_spacing_bytes
        && check.intact(&[SPACING])
        && spacing > capacity
    {
        let message = format!(
            "`{SPACING}` is {}, and all credits of a link are {}: a sender would wait for an update that never leaves",
            shown(spacing, Unit::Bytes),
            shown(capacity, Unit::Bytes)
        );
        let hint = format!("write at most {}", shown(capacity, Unit::Bytes));
        check.complain(&[SPACING], Complaint::about(message).hint(hint));
    }
    let bits = choice.counter_bits;
    let limit = CreditConfig::limit_for_bits(bits);
    if check.intact(&[BITS]) && u64::from(credits.limit) > limit {
        let message = format!(
            "{} credits are more than half of the range of {bits}-bit counters: new and old values could not be distinguished",
            credits.limit
        );
        let hint = format!("write a `credits.limit` of at most {limit}, or more `counter_bits`");
        check.complain(&[BITS, "credits.limit"], Complaint::about(message).hint(hint));
    }
}
