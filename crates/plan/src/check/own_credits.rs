//! Credits of single links, in place of those of all.

use rackloom_protocol::CreditConfig;

use crate::check::Inspection;
use crate::mistake::Complaint;
use crate::plan::{LinkPlan, WireKind};
use crate::quantity::{Unit, shown};
use crate::schema;

type PathOf<'f> = &'f dyn Fn(&Inspection<'_>, &str) -> String;

pub(super) fn check(check: &mut Inspection<'_>, link: &LinkPlan, path_of: PathOf<'_>) {
    let Some(limit) = link.profile.credits else { return };
    let path = path_of(check, "credits");
    let fine = check.within_at(&path, &schema::LINK, "credits", limit);
    let rest =
        ["credits.unit_bytes", "credits.overhead_bytes", "ring_bytes", "frame_bytes_max", "channels.limits"];
    if !fine || !check.intact(&[&path]) || !check.intact(&rest) || link.credits.unit_bytes == 0 {
        return;
    }
    let is_heeded = link.profile.pause.is_none();
    let trouble = meaningless(check, link, &path);
    if let Some((message, hint)) = trouble.or_else(|| unfit(check, link, &path).filter(|_| is_heeded)) {
        check.complain(&[&path], Complaint::about(message).hint(hint));
    }
}

/// Where a link has no credits of its own, or none at all; what is said of all links may mean nothing to some.
fn meaningless(check: &Inspection<'_>, link: &LinkPlan, path: &str) -> Option<(String, String)> {
    let is_own = path.starts_with("links.");
    if link.profile.pause.is_some() && is_own {
        let message = format!("`{path}` means nothing: {} pauses in place of credits", link.name);
        return Some((message, "leave it out, or write `pfc: off` for the link".to_owned()));
    }
    check.plan.has_bridges().then(|| {
        let message =
            format!("`{path}` means nothing: links through a bridge share the credits of an interface");
        (message, "write `credits: {limit: ...}` for all of them".to_owned())
    })
}

/// Too few for its frames, or too many for its ring or its counters.
fn unfit(check: &Inspection<'_>, link: &LinkPlan, path: &str) -> Option<(String, String)> {
    let plan = check.plan;
    let CreditConfig { unit_bytes, limit, .. } = link.credits;
    let (frames, in_words) = if plan.forwarding.rules.bubble { (2, "two frames") } else { (1, "one frame") };
    let count = plan.channels.config.count() as u32;
    let least = (frames * link.credits.cost(usize::from(plan.frame_bytes_max)))
        .saturating_mul(count)
        .max(plan.channels.limits.iter().fold(0, |sum, limit| sum.saturating_add(*limit)));
    if limit < least {
        let of_each = if count > 1 { format!(" of each of {count} channels") } else { String::new() };
        let message = format!(
            "`{path}` of {limit} is room for fewer than {in_words} of {}{of_each}",
            shown(plan.frame_bytes_max.into(), Unit::Bytes)
        );
        return Some((message, format!("write at least {least}")));
    }
    let most = match plan.wire_of(&link.edge) {
        WireKind::SharedMemory => u64::from(plan.ring_bytes) / 4 * 3 / u64::from(unit_bytes),
        WireKind::Packet | WireKind::Udp => u64::MAX,
    };
    let most = most.min(CreditConfig::limit_for_bits(plan.credit_choice.counter_bits.unwrap_or(32)));
    if u64::from(limit) > most {
        let message = format!(
            "`{path}` of {limit} is more than a ring of {} or the counters can take",
            shown(plan.ring_bytes.into(), Unit::Bytes)
        );
        return Some((message, format!("write at most {most}, or raise `ring_bytes`")));
    }
    let room = u64::from(plan.channels.least_share(limit)) * u64::from(unit_bytes);
    let spacing = plan.credit_choice.update_spacing_bytes.filter(|spacing| *spacing > room)?;
    let message = format!(
        "`{path}` of {limit} is less than the `update_spacing` of {}: a sender would wait for an update that never leaves",
        shown(spacing, Unit::Bytes)
    );
    Some((message, "write more credits, or a smaller `credits.update_spacing`".to_owned()))
}
