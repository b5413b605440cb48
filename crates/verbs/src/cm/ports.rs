//! Ports of this process. Other processes of the seat have ports of their own: no list is common to them.

use std::collections::BTreeMap;

use rustix::io::Errno;

/// Ports that a program gets if it names none.
const FREE: std::ops::RangeInclusive<u16> = 32768..=60999;

/// Ports in use, with the number of their users.
#[derive(Default)]
pub(super) struct Ports {
    used: BTreeMap<(u16, u16), u32>,
    next: u16,
}

impl Ports {
    /// Returns no ports. The search for a free one begins at a position that follows from the seed.
    pub(super) fn new(seed: u64) -> Self {
        let count = u64::from(FREE.end() - FREE.start()) + 1;
        Self { used: BTreeMap::new(), next: FREE.start() + u16::try_from(seed % count).unwrap_or(0) }
    }

    /// Takes a port of a space. Port 0 is any free one.
    pub(super) fn take(&mut self, space: u16, port: u16, is_shared: bool) -> Result<u16, Errno> {
        let port = if port == 0 { self.free(space)? } else { port };
        let users = self.used.entry((space, port)).or_insert(0);
        if *users > 0 && !is_shared {
            return Err(Errno::ADDRINUSE);
        }
        *users += 1;
        Ok(port)
    }

    fn free(&mut self, space: u16) -> Result<u16, Errno> {
        for _ in FREE {
            let port = self.next;
            self.next = if port >= *FREE.end() { *FREE.start() } else { port + 1 };
            if !self.used.contains_key(&(space, port)) {
                return Ok(port);
            }
        }
        Err(Errno::ADDRNOTAVAIL)
    }

    /// Takes back one use.
    pub(super) fn release(&mut self, space: u16, port: u16) {
        if let Some(users) = self.used.get_mut(&(space, port)) {
            *users -= 1;
            if *users == 0 {
                self.used.remove(&(space, port));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_one_user_unless_it_is_shared() {
        let mut ports = Ports::new(u64::MAX);
        assert_eq!(ports.take(1, 7174, false), Ok(7174));
        assert_eq!(ports.take(1, 7174, false), Err(Errno::ADDRINUSE));
        assert_eq!(ports.take(2, 7174, false), Ok(7174), "another space");
        assert_eq!(ports.take(1, 7174, true), Ok(7174));
        ports.release(1, 7174);
        assert_eq!(ports.take(1, 7174, false), Err(Errno::ADDRINUSE));
        ports.release(1, 7174);
        assert_eq!(ports.take(1, 7174, false), Ok(7174));
    }

    #[test]
    fn free_ports_end_at_their_number() {
        let mut ports = Ports::new(5);
        let all: std::collections::BTreeSet<_> =
            FREE.map(|_| ports.take(1, 0, false).expect("a port")).collect();
        assert_eq!(all.len(), FREE.count());
        assert_eq!(ports.take(1, 0, false), Err(Errno::ADDRNOTAVAIL));
    }
}
