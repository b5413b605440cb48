//! IP over the fabric in a rack for programs: whether its seats can have interfaces.

use std::net::Ipv4Addr;

use rackloom::ip::{PREFIX_BITS, address_of};
use rackloom::namespaces::enter_user_namespace;
use rackloom_control::request::IpStatus;
use rackloom_control::source::{ProcessSeats, Source};
use rackloom_plan::Plan;

/// Makes what interfaces of seats need: the right to network namespaces, which a user without it gets from a user namespace. The agents of the seats
/// enter it later. `None` if the rack has no IP. The calling process must have one thread.
pub(super) fn prepare(source: &Source, plan: &Plan) -> Option<IpStatus> {
    if source.process_seats == ProcessSeats::None || !plan.settings.ip {
        return None;
    }
    let mask = u32::MAX << (32 - u32::from(PREFIX_BITS));
    let network = format!("{}/{PREFIX_BITS}", Ipv4Addr::from(u32::from(address_of(0)) & mask));
    Some(IpStatus { network, unavailable: enter_user_namespace().err().map(|error| error.to_string()) })
}
