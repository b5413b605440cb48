//! Checks channels of one link: only if the rack has several, and with a list of the right length.

use crate::check::inspection::Inspection;
use crate::model::links::link::LinkPlan;
use crate::model::links::of_link::OwnChannels;
use crate::read::mistake::Complaint;

pub(super) fn check(
    check: &mut Inspection<'_>,
    link: &LinkPlan,
    path_of: &dyn Fn(&Inspection<'_>, &str) -> String,
) {
    let OwnChannels { are_divided, limits } = &link.profile.channels;
    let count = check.plan.channels.config.count();
    let [short, path] = ["channels", "channels.limits"].map(|key| path_of(check, key));
    if count == 1 && (!are_divided || !limits.is_empty()) {
        let path = if limits.is_empty() { short } else { path };
        let message = format!("`{path}` means nothing: the rack has one channel");
        let hint = "say which it has, like `channels: by-class` at the top, or leave this out";
        if check.intact(&["channels"]) {
            check.complain(&[&path], Complaint::about(message).hint(hint));
        }
    } else if !limits.is_empty() && limits.len() != count && check.intact(&[&path]) {
        let message = format!("`{path}` has {} numbers for {count} channels", limits.len());
        check.complain(&[&path], Complaint::about(message).hint(format!("write {count} numbers")));
    }
}
