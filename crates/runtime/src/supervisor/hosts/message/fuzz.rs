//! Fuzz target of the messages between supervisors of several hosts.

use rackloom_fuzz::{MemoryLimit, Target};

use super::*;

const HOSTS: usize = 3;

/// Computes the check anew where the message says that it is, as a member of the segment without the key can.
fn forged(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let count = frame.get(ETHERNET_BYTES + 5).copied().unwrap_or(0);
    let end = HEADER_BYTES + usize::from(count) * ENTRY_BYTES;
    frame.resize(frame.len().max(end + CHECK_BYTES), 0);
    let check = crc32c(&frame[..end]).to_le_bytes();
    frame[end..end + CHECK_BYTES].copy_from_slice(&check);
    frame
}

/// Writes a message anew and compares what is read from it. Returns the outcome.
fn survives(identity: &Identity, frame: &[u8]) -> String {
    let (speaker, news, proof) = match identity.read(frame, HOSTS) {
        HostMessage::Ours { speaker, news, proof, frame_bytes } => {
            assert_eq!(frame_bytes, frame.len());
            assert!(speaker < HOSTS && news.len() == HOSTS && proof.incarnations.len() == HOSTS);
            (speaker, news, proof)
        }
        HostMessage::Other(_, Difference::Epoch(_), _) => return "another epoch".to_owned(),
        HostMessage::Other(_, Difference::Version(_), _) => return "another version".to_owned(),
        HostMessage::Refused => return "refused".to_owned(),
        HostMessage::Foreign => return "foreign".to_owned(),
    };
    let written = identity.write(speaker, &news, &proof.incarnations, frame.len());
    let HostMessage::Ours { speaker: speaker_again, news: news_again, proof: proof_again, .. } =
        identity.read(&written, HOSTS)
    else {
        panic!("a written message is not read")
    };
    assert_eq!((speaker_again, &news_again), (speaker, &news));
    assert_eq!(proof_again.incarnations, proof.incarnations);
    assert_eq!(identity.write(speaker, &news_again, &proof_again.incarnations, frame.len()), written);
    format!(
        "ours {:?}",
        news.iter().map(|host| host.stage as u8).map(|stage| char::from(b'a' + stage)).collect::<String>()
    )
}

#[test]
fn messages_of_hosts_are_read_and_written_alike() {
    let plan = Plan::parse("name: rack\nshape: {ring: {nodes: 4}}\n", "rack").expect("the rack is whole");
    let plain = Identity::of(&plan);
    let sealed = plain.clone().sealed(&RackKey::of_secret(&[7; 32]), HOSTS);
    let news = [Stage::Working, Stage::Finished, Stage::Gone].map(|stage| HostState {
        incarnation: 1 << 60,
        words: 70_000,
        stage,
    });
    let seeds = vec![
        plain.write(1, &news, &[], 0),
        plain.write(2, &news, &[0, u64::MAX, 0], 300),
        plain.write(0, &[HostState::default(); HOSTS], &[], 0),
        sealed.write(1, &news, &[], 0),
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
