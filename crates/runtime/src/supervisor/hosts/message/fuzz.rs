//! Fuzz target of the messages between supervisors of several hosts.

use rackloom_fuzz::{MemoryLimit, Target};

use super::*;

const HOSTS: usize = 3;

/// Computes the check again at its position, as a member of the segment without the key can.
fn forged(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let count = frame.get(ETHERNET_BYTES + 5).copied().unwrap_or(0);
    let end = HEADER_BYTES + usize::from(count) * ENTRY_BYTES;
    frame.resize(frame.len().max(end + CHECK_BYTES), 0);
    let check = crc32c(&frame[..end]).to_le_bytes();
    frame[end..end + CHECK_BYTES].copy_from_slice(&check);
    frame
}

/// Writes a received message again, reads it, and compares. Returns the kind of the message.
fn survives(identity: &Identity, frame: &[u8]) -> String {
    let (sender, states, proof) = match identity.read(frame, HOSTS) {
        HostMessage::Ours { sender, states, proof, frame_bytes } => {
            assert_eq!(frame_bytes, frame.len());
            assert!(sender < HOSTS && states.len() == HOSTS && proof.incarnations.len() == HOSTS);
            (sender, states, proof)
        }
        HostMessage::Other(_, Difference::Epoch(_), _) => return "another epoch".to_owned(),
        HostMessage::Other(_, Difference::Version(_), _) => return "another version".to_owned(),
        HostMessage::Refused => return "refused".to_owned(),
        HostMessage::Foreign => return "foreign".to_owned(),
    };
    let written = identity.write(sender, &states, &proof.incarnations, frame.len());
    let HostMessage::Ours { sender: sender_again, states: states_again, proof: proof_again, .. } =
        identity.read(&written, HOSTS)
    else {
        panic!("a written message is not read")
    };
    assert_eq!((sender_again, &states_again), (sender, &states));
    assert_eq!(proof_again.incarnations, proof.incarnations);
    assert_eq!(identity.write(sender, &states_again, &proof_again.incarnations, frame.len()), written);
    format!(
        "ours {:?}",
        states.iter().map(|host| host.stage as u8).map(|stage| char::from(b'a' + stage)).collect::<String>()
    )
}

#[test]
fn messages_of_hosts_survive_a_write_and_a_read() {
    let plan = Plan::parse("name: rack\nshape: {ring: {nodes: 4}}\n", "rack").expect("a plan");
    let plain = Identity::of(&plan);
    let sealed = plain.clone().sealed(&RackKey::of_secret(&[7; 32]), HOSTS);
    let states = [Stage::Working, Stage::Finished, Stage::Gone].map(|stage| HostState {
        incarnation: 1 << 60,
        messages: 70_000,
        stage,
    });
    let seeds = vec![
        plain.write(1, &states, &[], 0),
        plain.write(2, &states, &[0, u64::MAX, 0], 300),
        plain.write(0, &[HostState::default(); HOSTS], &[], 0),
        sealed.write(1, &states, &[], 0),
    ];
    let memory = MemoryLimit { base_bytes: 64 << 10, per_input_byte: 16 };
    let target = Target { name: "hosts", seeds, tokens: &[], input_bytes_max: 9216, memory };
    target.run(|frame| {
        let with_key = match sealed.read(frame, HOSTS) {
            HostMessage::Ours { .. } => "tagged",
            HostMessage::Refused => "refused",
            _ => "foreign",
        };
        format!("{with_key}, {}, {}", survives(&plain, frame), survives(&plain, &forged(frame)))
    });
}
