//! Names of the variables by which a program knows its seat.

use rackloom_control::submitted::{NODES_VARIABLE, RANK_VARIABLE, SEAT_VARIABLE};
use rackloom_verbs::abi;

#[test]
fn the_variables_are_those_that_the_rack_sets() {
    assert_eq!(abi::SEAT_VARIABLE, SEAT_VARIABLE);
    assert_eq!(abi::RANK_VARIABLE, RANK_VARIABLE);
    assert_eq!(abi::NODES_VARIABLE, NODES_VARIABLE);
}
