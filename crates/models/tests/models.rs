//! Every model with the number of preemptions that two processors check within a few seconds. `LOOM_MAX_PREEMPTIONS` allows more.

use rackloom_models::{
    a_page_is_read_whole, frames_arrive_in_order, no_wake_up_for_frames_is_lost,
    no_wake_up_for_space_is_lost, owner_and_contenders_exclude_each_other,
};

#[test]
fn a_ring_is_a_queue_in_every_order() {
    frames_arrive_in_order(3);
}

#[test]
fn a_parked_node_is_woken_by_frames_in_every_order() {
    no_wake_up_for_frames_is_lost(3);
}

#[test]
fn a_parked_node_is_woken_by_space_in_every_order() {
    no_wake_up_for_space_is_lost(3);
}

#[test]
fn an_owner_and_a_contender_exclude_each_other_in_every_order() {
    owner_and_contenders_exclude_each_other(2, 1, 3);
}

#[test]
fn an_owner_and_two_contenders_exclude_each_other_in_every_order() {
    owner_and_contenders_exclude_each_other(1, 2, 3);
}

#[test]
fn a_status_page_is_read_whole_in_every_order() {
    a_page_is_read_whole(3);
}
