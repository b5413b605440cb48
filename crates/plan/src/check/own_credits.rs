//! Checks credits of one link: enough for its frames, within its ring, and with updates that arrive.

use rackloom_protocol::CreditConfig;

use crate::check::inspection::Inspection;
use crate::model::links::link::LinkPlan;
use crate::model::links::of_link::OwnCredits;

use crate::setting::quantity::{Unit, shown};

type PathOf<'f> = &'f dyn Fn(&Inspection<'_>, &str) -> String;

/// Paths of the settings of a link in the file.
struct Paths {
    limit: String,
    spacing: String,
    resync: String,
    limits: String,
}

/// Mistake at a key of one link.
struct CreditMistake<'p> {
    path: &'p str,
    message: String,
    hint: String,
}

pub(super) fn check(check: &mut Inspection<'_>, link: &LinkPlan, path_of: PathOf<'_>) {
    let OwnCredits { limit, update_spacing_bytes, resync } = link.profile.credits;
    let limits = &link.profile.channels.limits;
    let paths = Paths::of(check, path_of);
    let stated = [
        (limit.is_some(), &paths.limit),
        (update_spacing_bytes.is_some(), &paths.spacing),
        (resync.is_some(), &paths.resync),
        (!limits.is_empty(), &paths.limits),
    ];
    let stated: Vec<&str> =
        stated.iter().filter(|(is_stated, _)| *is_stated).map(|(_, path)| path.as_str()).collect();
    let rest =
        ["credits.unit_bytes", "credits.overhead_bytes", "ring_bytes", "frame_bytes_max", "channels.limits"];
    let is_whole = check.intact(&stated) && check.intact(&rest) && link.credits.unit_bytes > 0;
    if stated.is_empty() || !is_whole {
        return;
    }
    let mut mistakes: Vec<_> = stated.iter().filter_map(|path| meaningless(check, link, path)).collect();
    if mistakes.is_empty() && link.profile.pfc.is_none() {
        mistakes.extend(unfit(check, link, &paths));
    }
    for CreditMistake { path, message, hint } in mistakes {
        check.complain(&[path], crate::read::mistake::Complaint::about(message).hint(hint));
    }
}

impl Paths {
    fn of(check: &Inspection<'_>, path_of: PathOf<'_>) -> Self {
        // `credits: 2000` and `credits: {limit: 2000}` are equivalent, each for one link or for all.
        let is_written = |path: &String| check.positions.first_written(&[path]).is_some();
        let short = path_of(check, "credits");
        let full = path_of(check, "credits.limit");
        let is_full = is_written(&full) && (full.starts_with("links.") || !short.starts_with("links."));
        Self {
            limit: if is_full { full } else { short },
            spacing: path_of(check, "credits.update_spacing"),
            resync: path_of(check, "credits.resync"),
            limits: path_of(check, "channels.limits"),
        }
    }
}

/// Returns a mistake if the link has no credits of its own. Settings of the rack may have no effect on some links.
fn meaningless<'p>(check: &Inspection<'_>, link: &LinkPlan, path: &'p str) -> Option<CreditMistake<'p>> {
    let is_own = path.starts_with("links.");
    if link.profile.pfc.is_some() && is_own {
        let message = format!("`{path}` means nothing: {} pauses in place of credits", link.name);
        let hint = "leave it out, or write `pfc: off` for the link".to_owned();
        return Some(CreditMistake { path, message, hint });
    }
    check.plan.has_bridges().then(|| {
        let message =
            format!("`{path}` means nothing: links through a bridge share the credits of an interface");
        CreditMistake { path, message, hint: "write `credits` for all of them".to_owned() }
    })
}

/// Returns a mistake if credits are too few for frames, too many for ring or counters, or updated too late.
fn unfit<'p>(check: &Inspection<'_>, link: &LinkPlan, paths: &'p Paths) -> Option<CreditMistake<'p>> {
    let own = &link.profile.credits;
    let path = if link.profile.channels.limits.is_empty() || own.limit.is_some() {
        &paths.limit
    } else {
        &paths.limits
    };
    too_few(check, link, path).or_else(|| own.limit.and_then(|_| too_many(check, link, path))).or_else(|| {
        too_late(check, link, if own.update_spacing_bytes.is_some() { &paths.spacing } else { path })
    })
}

fn too_few<'p>(check: &Inspection<'_>, link: &LinkPlan, path: &'p str) -> Option<CreditMistake<'p>> {
    let plan = check.plan;
    let CreditConfig { limit, .. } = link.credits;
    let (frames, in_words) = if plan.forwarding.bubble { (2, "two frames") } else { (1, "one frame") };
    let (count, limits) = (plan.channels.count_of(&link.profile), plan.channels.limits_of(&link.profile));
    let of_channel = frames * link.credits.cost(usize::from(plan.settings.frame_bytes_max));
    let together = limits.iter().fold(0_u32, |sum, limit| sum.saturating_add(*limit));
    let least = of_channel.saturating_mul(count as u32).max(together);
    let smallest = plan.channels.least_share(&link.profile, limit);
    if limit >= least && smallest >= of_channel {
        return None;
    }
    let frame = shown(plan.settings.frame_bytes_max.into(), Unit::Bytes);
    let (message, hint) = if limit < least && limit < together {
        let message = format!(
            "the `limits` of the channels of {} are {together} credits together, and it has {limit}",
            link.name
        );
        (message, format!("lower them, or write at least {least}"))
    } else if limit < least {
        let of_each = if count > 1 { format!(" of each of {count} channels") } else { String::new() };
        let message = format!("`{path}` of {limit} holds fewer than {in_words} of {frame}{of_each}");
        (message, format!("write at least {least}"))
    } else {
        let message =
            format!("`{path}` gives a channel {smallest}, which holds fewer than {in_words} of {frame}");
        (message, format!("write at least {of_channel} for each channel"))
    };
    Some(CreditMistake { path, message, hint })
}

fn too_many<'p>(check: &Inspection<'_>, link: &LinkPlan, path: &'p str) -> Option<CreditMistake<'p>> {
    let plan = check.plan;
    let CreditConfig { unit_bytes, limit, .. } = link.credits;
    let most = match plan.wire_of(&link.edge).has_rings() {
        true => u64::from(plan.settings.ring_bytes) / 4 * 3 / u64::from(unit_bytes),
        false => u64::MAX,
    };
    let most = most.min(CreditConfig::limit_for_bits(plan.credit_choice.counter_bits));
    (u64::from(limit) > most).then(|| {
        let message = format!(
            "`{path}` of {limit} is more than a ring of {} or the counters can take",
            shown(plan.settings.ring_bytes.into(), Unit::Bytes)
        );
        CreditMistake { path, message, hint: format!("write at most {most}, or raise `ring_bytes`") }
    })
}

fn too_late<'p>(check: &Inspection<'_>, link: &LinkPlan, path: &'p str) -> Option<CreditMistake<'p>> {
    let plan = check.plan;
    let CreditConfig { unit_bytes, limit, .. } = link.credits;
    let least = plan.channels.least_share(&link.profile, limit);
    let capacity = u64::from(least) * u64::from(unit_bytes);
    let own = link.profile.credits.update_spacing_bytes;
    let spacing = own.or(plan.credit_choice.update_spacing_bytes).filter(|spacing| *spacing > capacity)?;
    if own.is_some() {
        let message = format!(
            "`{path}` is {}, and a channel of {} has credits for {}: a sender would wait for an update that never leaves",
            shown(spacing, Unit::Bytes),
            link.name,
            shown(capacity, Unit::Bytes)
        );
        return Some(CreditMistake {
            path,
            message,
            hint: format!("write at most {}", shown(capacity, Unit::Bytes)),
        });
    }
    let message = format!(
        "`{path}` of {least} is less than the `update_spacing` of {}: a sender would wait for an update that never leaves",
        shown(spacing, Unit::Bytes)
    );
    Some(CreditMistake {
        path,
        message,
        hint: "write more credits, or a smaller `credits.update_spacing`".to_owned(),
    })
}
