//! Tests of refused imports, and of the error that each importer gets.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;

use rackloom::sharing::{Cut, ExportEvent, Exporter, ImportError, Importer, Refusal, Seat};
use rackloom_protocol::{RegionId, Tenant};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, bind, connect, recv, send, socket,
};

use super::parts::request_bytes;
use super::rig::*;

#[test]
fn every_reason_of_a_refusal_is_reported() {
    let directory = RunDirectory::new("refused");
    let (mut owner, mut other) = with_same_tenant("requester", &directory);
    let (region, key) = (u64::from(REGION.0), KEY.0);
    let mut request = |owner: &mut Owner, region: u64, key: u64| {
        other.send_line(&format!("{region} {key}"));
        other.next_line(owner)
    };
    assert_eq!(request(&mut owner, region, key), "granted");
    let child = owner.exporter.seats_mut().seat(SAME_TENANT).unwrap().process.unwrap();
    let mut refused = |owner: &mut Owner, region: u64, key: u64, reason: Refusal| {
        let answer = request(owner, region, key);
        assert!(answer.ends_with(&reason.to_string()), "{answer} instead of {reason}");
        let event = ExportEvent::Refused { process: child, region: Some(RegionId(region as u32)), reason };
        assert_eq!(owner.events.last(), Some(&event));
    };
    refused(&mut owner, region + 1, key, Refusal::NoSuchRegion);
    refused(&mut owner, region, key + 1, Refusal::BadKey);
    // The table of the owner decides about tenant, server and process of the seat that a request names.
    let table = owner.exporter.seats_mut().clone();
    let seat = table.seat(SAME_TENANT).unwrap().clone();
    let assign = |owner: &mut Owner, seat: Seat| {
        let others = [PARENT_NODE, OTHER_TENANT].map(|node| table.seat(node).unwrap().clone());
        *owner.exporter.seats_mut() = others.into_iter().chain([seat]).collect();
    };
    assign(&mut owner, Seat { tenant: Tenant(2), ..seat.clone() });
    refused(&mut owner, region, key, Refusal::WrongTenant);
    assign(&mut owner, Seat { server: "there".to_owned(), ..seat.clone() });
    refused(&mut owner, region, key, Refusal::OtherServer);
    assign(&mut owner, Seat { process: None, ..seat.clone() });
    refused(&mut owner, region, key, Refusal::NoSeat);
    refused(&mut owner, region + 1, key, Refusal::NoSeat);
    assert!(owner.exporter.seats_mut().occupy(OTHER_TENANT, child));
    refused(&mut owner, region, key, Refusal::NoSeat);
    assign(&mut owner, seat);
    owner.exporter.revoke(&mut owner.memory, REGION, TIMEOUT, Cut::IfSilent).unwrap();
    refused(&mut owner, region, key, Refusal::Revoked);
    refused(&mut owner, region, key + 1, Refusal::BadKey);
}

#[test]
fn another_user_is_refused_even_if_the_socket_lets_it_in() {
    if !rustix::process::geteuid().is_root() {
        let text =
            "SKIPPED (1): another_user_is_refused_even_if_the_socket_lets_it_in: only root can change user\n";
        return std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
    }
    let directory = RunDirectory::new("user");
    let mut owner = Owner::exporting(PARENT_NODE, directory.path(), seats(std::process::id()));
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(entry.unwrap().path(), permissions).unwrap();
    }
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), permissions).unwrap();
    let mut command = Other::command("requester", &directory);
    command.uid(65_534);
    let mut other = Other::spawn(command);
    owner.exporter.seats_mut().occupy(SAME_TENANT, other.process());
    other.send_line(&format!("{} {}", REGION.0, KEY.0));
    // The importer detects first that the listening process belongs to another user.
    let error = other.next_line(&mut owner);
    assert!(error.contains("of user 0 listens in the place of m0"), "{error}");
    drop(other);
    // An importer that does not check is refused by the owner.
    owner.events.clear();
    let mut command = Other::command("unauthorised", &directory);
    command.uid(65_534);
    let mut other = Other::spawn(command);
    owner.exporter.seats_mut().occupy(SAME_TENANT, other.process());
    assert_eq!(other.next_line(&mut owner), "[6, 0, 1, 0]", "version 6, first refusal");
    let (process, reason) = (other.process(), Refusal::WrongUser);
    assert_eq!(owner.events, [ExportEvent::Refused { process, region: Some(REGION), reason }]);
}

/// Opens a connection without a request.
fn open_connection(directory: &RunDirectory) -> OwnedFd {
    let name = SocketAddrUnix::new(directory.path().join("memory-0.sock")).unwrap();
    let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    connect(&socket, &name).unwrap();
    socket
}

#[test]
fn malformed_requests_are_answered_and_silent_connections_closed() {
    let directory = RunDirectory::new("malformed");
    let mut owner = Owner::exporting(PARENT_NODE, directory.path(), seats(0));
    owner.exporter.seats_mut().occupy(SAME_TENANT, std::process::id());
    let whole = request_bytes(REGION, KEY);
    let mut longer = whole.clone();
    longer.push(0);
    for malformed in [&[][..], &[0], &whole[..23], &longer, &[0xff; 24], &[7; 5000]] {
        let socket = open_connection(&directory);
        send(&socket, malformed, SendFlags::empty()).unwrap();
        owner.serve_until(|owner| owner.events.pop().is_some());
        let mut answer = [0; 128];
        let (length, _) = recv(&socket, &mut answer, RecvFlags::empty()).unwrap();
        assert_eq!((length, answer[6]), (96, 9), "{malformed:?}");
    }
    let silent = open_connection(&directory);
    owner.serve();
    assert_eq!(owner.exporter.connections_open(), 1);
    owner.serve_at(2_000_000_000_000);
    assert_eq!(owner.exporter.connections_open(), 0);
    assert_eq!(recv(&silent, &mut [0; 8], RecvFlags::empty()).unwrap().0, 0);
    drop(open_connection(&directory));
    owner.serve();
    owner.serve();
    assert_eq!(owner.exporter.connections_open(), 0, "a connection without a request is closed");
}

#[test]
fn the_files_of_a_dead_owner_are_removed_and_those_of_a_live_owner_stay() {
    let directory = RunDirectory::new("swept");
    let path = directory.path().join("memory-0.sock");
    let left = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&left, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    drop(left);
    assert!(path.exists());
    let owner = Owner::new(PARENT_NODE, directory.path(), seats(0));
    let second = Exporter::listen(PARENT_NODE, directory.path(), seats(0), None);
    assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    drop(owner);
    assert!(!path.exists(), "a live owner removes its name at its end");
    let long = directory.path().join("x".repeat(200));
    let error = Exporter::listen(PARENT_NODE, &long, seats(0), None).unwrap_err().to_string();
    assert!(error.contains("hint: "), "{error}");
}

#[test]
fn another_process_in_an_owners_seat_is_detected() {
    let directory = RunDirectory::new("impostor");
    let _other_process = Owner::exporting(SAME_TENANT, directory.path(), seats(std::process::id()));
    let mut table = seats(std::process::id());
    table.occupy(SAME_TENANT, 1);
    let importer = Importer::new(PARENT_NODE, directory.path(), table);
    let error = importer.import(SAME_TENANT, REGION, KEY).unwrap().wait(TIMEOUT, || ()).unwrap_err();
    assert!(
        matches!(error, ImportError::WrongProcess { owner: SAME_TENANT, process, .. } if process == std::process::id())
    );
    let elsewhere = importer.import(OTHER_SERVER, REGION, KEY);
    assert!(matches!(elsewhere, Err(ImportError::OtherServer(OTHER_SERVER))));
}
