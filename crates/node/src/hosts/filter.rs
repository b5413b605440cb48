//! Frame filters of sockets: classic BPF programs that the kernel runs for each frame on the interface.
//!
//! A link's socket receives the frames that one neighbour sends to one member, without a VLAN tag. The socket's binding selects the EtherType. Links
//! that share an interface therefore do not receive each other's frames. Foreign frames stay in the kernel unless they have a neighbour's address;
//! the core refuses and counts those.
//!
//! On interfaces that only the rack uses (at a bridge), foreign frames are counted too. There a separate socket receives every frame that no link
//! receives.

use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// Opcodes that load a word or a half word at an offset of the frame.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
/// Opcode that compares the loaded value with the operand, and skips a given number of steps for each result.
const JUMP_IF_EQUAL: u16 = 0x15;
/// Opcode that ends the program and accepts the given number of bytes of the frame.
const RETURN: u16 = 0x06;
/// Offset at which the kernel provides whether a frame had a VLAN tag (`SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT`).
const VLAN_TAG_PRESENT: u32 = (-0x1000_i32 + 48) as u32;
/// Number of bytes that accepts the whole frame.
const WHOLE: u32 = u32::MAX;

/// A comparison: load opcode, offset and expected value.
type Test = (u16, u32, u32);

/// Returns a program that accepts untagged frames to `target`, from `source` if given.
pub(crate) fn frames_of(target: [u8; 6], source: Option<[u8; 6]>) -> Vec<libc::sock_filter> {
    let mut tests: Vec<Test> = vec![(LOAD_WORD, VLAN_TAG_PRESENT, 0)];
    tests.extend(address_at(0, target));
    tests.extend(source.into_iter().flat_map(|source| address_at(6, source)));
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = Vec::new();
    for (index, (load, at, value)) in tests.iter().enumerate() {
        // After this pair come the pairs of the remaining tests, the result "whole", and the result "nothing".
        let to_nothing = (2 * (tests.len() - index - 1) + 1) as u8;
        program.push(step(*load, 0, 0, *at));
        program.push(step(JUMP_IF_EQUAL, 0, to_nothing, *value));
    }
    program.push(step(RETURN, 0, 0, WHOLE));
    program.push(step(RETURN, 0, 0, 0));
    program
}

/// Returns a program that accepts all frames except the untagged ones that these neighbours send to `target`.
pub(crate) fn all_but(target: [u8; 6], neighbours: &[[u8; 6]]) -> Vec<libc::sock_filter> {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![
        step(LOAD_WORD, 0, 0, VLAN_TAG_PRESENT),
        step(JUMP_IF_EQUAL, 1, 0, 0),
        step(RETURN, 0, 0, WHOLE),
    ];
    for other in neighbours {
        let tests: Vec<Test> = address_at(0, target).into_iter().chain(address_at(6, *other)).collect();
        for (index, (load, at, value)) in tests.iter().enumerate() {
            // After the remaining tests of this neighbour comes the result "nothing", and after that the next neighbour.
            let to_next = (2 * (tests.len() - index - 1) + 1) as u8;
            program.push(step(*load, 0, 0, *at));
            program.push(step(JUMP_IF_EQUAL, 0, to_next, *value));
        }
        program.push(step(RETURN, 0, 0, 0));
    }
    program.push(step(RETURN, 0, 0, WHOLE));
    program
}

fn address_at(offset: u32, [a, b, c, d, e, f]: [u8; 6]) -> [Test; 2] {
    [
        (LOAD_WORD, offset, u32::from_be_bytes([a, b, c, d])),
        (LOAD_HALF, offset + 4, u32::from(u16::from_be_bytes([e, f]))),
    ]
}

/// Attaches a filter program to a socket.
pub(crate) fn attach(socket: &OwnedFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let described = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: needed because this option has no safe form. The kernel copies `len` steps of the program, which is borrowed through the call, and
    // checks them before it runs them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            ptr::from_ref(&described).cast(),
            size_of_val(&described) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would, for the few opcodes that are used here.
    fn takes(program: &[libc::sock_filter], frame: &[u8], tagged: bool) -> bool {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            let offset = step.k as usize;
            match step.code {
                LOAD_WORD if step.k == VLAN_TAG_PRESENT => loaded = u32::from(tagged),
                LOAD_WORD => loaded = u32::from_be_bytes(frame[offset..offset + 4].try_into().unwrap()),
                LOAD_HALF => {
                    loaded = u16::from_be_bytes(frame[offset..offset + 2].try_into().unwrap()).into()
                }
                JUMP_IF_EQUAL => at += usize::from(if loaded == step.k { step.jt } else { step.jf }),
                RETURN => return step.k > 0,
                other => panic!("step {other:#x}"),
            }
            at += 1;
        }
    }

    #[test]
    fn a_link_gets_what_its_neighbour_sends_to_it_and_nothing_else() {
        let (mine, theirs) = ([2, 3, 4, 5, 6, 7], [10, 11, 12, 13, 14, 15]);
        let program = frames_of(mine, Some(theirs));
        let frame = [mine, theirs].concat();
        assert!(takes(&program, &frame, false));
        assert!(!takes(&program, &frame, true), "tagged");
        for byte in 0..frame.len() {
            let mut other = frame.clone();
            other[byte] ^= 1;
            assert!(!takes(&program, &other, false), "byte {byte}");
            assert_eq!(takes(&frames_of(mine, None), &other, false), byte >= 6, "byte {byte}");
        }
    }

    #[test]
    fn a_socket_for_foreign_frames_receives_all_but_the_neighbours() {
        let (mine, others) = ([2, 3, 4, 5, 6, 7], [[10, 11, 12, 13, 14, 15], [10, 11, 12, 13, 14, 16]]);
        let program = all_but(mine, &others);
        for other in others {
            for (frame, tagged) in [([mine, other], false), ([mine, other], true), ([other, mine], false)] {
                let is_of_a_link = takes(&frames_of(mine, Some(other)), &frame.concat(), tagged);
                assert_eq!(takes(&program, &frame.concat(), tagged), !is_of_a_link, "{frame:?}");
            }
        }
        for foreign in [[mine, mine], [others[0], others[1]], [[0xff; 6], others[0]], [mine, [10; 6]]] {
            assert!(takes(&program, &foreign.concat(), false) && takes(&program, &foreign.concat(), true));
        }
        assert!(takes(&all_but(mine, &[]), &[mine, mine].concat(), false));
    }
}
