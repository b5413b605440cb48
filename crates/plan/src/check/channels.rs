//! Checks virtual channels: lanes without gaps, lengths of lists, credits of every channel, and deadlock.

use rackloom_protocol::{ArbiterKind, CHANNELS_MAX, Rise};

use crate::check::deadlock::{self, Safety};
use crate::check::inspection::Inspection;
use crate::model::times::timing::DeadlockPolicy;
use crate::read::mistake::Complaint;

/// Checks the channel settings alone.
pub(super) fn settings(check: &mut Inspection<'_>) {
    let channels = &check.plan.channels;
    let config = &channels.config;
    let (lanes, count) = (usize::from(config.lanes()), config.count());
    if let Some(lane) = (0..config.lanes()).find(|lane| !config.lane_of.contains(lane)) {
        let message =
            format!("no class travels on lane {lane} of `channels.lanes`, and a higher lane is used");
        let hint = "number lanes from 0 without gaps";
        check.complain(
            &[
                "channels.lanes.bulk_reply",
                "channels.lanes.bulk",
                "channels.lanes.reply",
                "channels.lanes.request",
            ],
            Complaint::about(message).hint(hint),
        );
    }
    if count > CHANNELS_MAX {
        let message = format!(
            "{lanes} lanes of {} levels are {count} channels, of which a link has {CHANNELS_MAX}",
            config.levels
        );
        let hint = "put several classes on one lane, or name fewer `levels`";
        check.complain(&["channels.levels", "channels.rise"], Complaint::about(message).hint(hint));
    }
    for (key, found, wanted, what) in [
        ("channels.weights", config.weights.len(), lanes, "lanes"),
        ("channels.limits", channels.limits.len(), count, "channels"),
    ] {
        if found > 0 && found != wanted && check.intact(&[key]) {
            let message = format!("`{key}` has {found} numbers for {wanted} {what}");
            check.complain(&[key], Complaint::about(message).hint(format!("write {wanted} numbers")));
        }
    }
    idle(check);
}

/// Reports keys that have no effect in combination with the others.
fn idle(check: &mut Inspection<'_>) {
    let config = &check.plan.channels.config;
    let written = |check: &Inspection<'_>, path| check.positions.first_written(&[path]).is_some();
    if config.arbiter != ArbiterKind::Weighted && written(check, "channels.weights") {
        let complaint = Complaint::about("`channels.weights` mean nothing without `arbiter: weighted`");
        check.complain(&["channels.weights"], complaint.hint("add it, or leave the weights out"));
    }
    if config.rise != Rise::Dateline && written(check, "channels.datelines") {
        let complaint = Complaint::about("`channels.datelines` mean nothing without `rise: dateline`");
        check.complain(&["channels.datelines"], complaint.hint("add it, or leave the datelines out"));
    }
    if config.rise == Rise::Never && config.levels > 1 {
        let message = format!("no frame ever comes to the other {} levels of its lane", config.levels - 1);
        check.complain(
            &["channels.levels"],
            Complaint::about(message).hint("say what makes it climb: `rise: hop`"),
        );
    }
}

/// Reports a rack that can deadlock. Only for a plan without other mistakes.
pub(super) fn cycles(check: &mut Inspection<'_>) {
    let plan = check.plan;
    let paths = [
        "forwarding.deadlock",
        "channels.rise",
        "channels.datelines",
        "channels.levels",
        "forwarding.bubble",
    ];
    if plan.channels.config.rise == Rise::Dateline && plan.channels.datelines.is_empty() {
        if check.intact(&["channels.datelines", "channels.rise"]) {
            let complaint = Complaint::about(
                "`rise: dateline` names no `datelines`, and only a ring or torus has its own",
            );
            check.complain(
                &["channels.rise"],
                complaint.hint("name links: `datelines: [a--b]`, or write `rise: hop`"),
            );
        }
        return;
    }
    if !check.mistakes.is_empty()
        || plan.forwarding.deadlock == DeadlockPolicy::Allow
        || !check.intact(&paths)
    {
        return;
    }
    if let Safety::Cycle(cycle) = deadlock::judge(plan) {
        let message = format!(
            "this rack can deadlock: full buffers may wait for each other in a cycle\n       {}",
            cycle.description()
        );
        let hint = cycle.hint();
        let of_links = cycle.undivided().iter().map(|edge| &plan.links[usize::from(*edge)].name);
        let mut paths: Vec<String> = of_links.map(|name| format!("links.{name}.channels")).collect();
        let others = ["forwarding.bubble", "channels.rise", "channels.datelines", "channels", "shape"];
        let of_all = if paths.is_empty() { None } else { Some("link.channels") };
        paths.extend(of_all.into_iter().chain(others).map(str::to_owned));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        check.complain(&paths, Complaint::about(message).hint(hint));
    }
}
