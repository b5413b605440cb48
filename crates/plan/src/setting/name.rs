//! Names in files: of racks, members, servers, hosts, interfaces and fault scripts.
//!
//! Names become parts of names of links, files and devices, so all of them consist of a few characters.

use crate::setting::complaint::{Complaint, quoted};

/// Largest length of a name. Names become names of files and devices.
pub(crate) const NAME_CHARACTERS_MAX: usize = 32;
/// Longest name of an interface in Linux, in bytes.
const INTERFACE_CHARACTERS_MAX: usize = 15;

/// Thing that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Member,
    Rack,
    Server,
    Host,
    Interface,
    Script,
}

impl Named {
    /// Reads a name of this thing.
    pub(crate) fn read(self, text: &str) -> Result<String, Complaint> {
        let allowed = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
        let starts_well = text.starts_with(|character: char| character.is_ascii_alphanumeric());
        let is_well_formed = starts_well && text.chars().all(allowed) && !text.contains("--");
        let hint = match self {
            Self::Interface if is_well_formed => {
                format!("names of interfaces have at most {INTERFACE_CHARACTERS_MAX} characters")
            }
            _ => format!(
                "a name begins with a letter or digit, goes on with letters, digits, `_`, `.` or single `-`, and has at most \
                 {NAME_CHARACTERS_MAX} characters"
            ),
        };
        if is_well_formed && text.len() <= self.characters_max() {
            return Ok(text.to_owned());
        }
        Err(Complaint::about(format!("{} is not a name{}", quoted(text), self.owner())).hint(hint))
    }

    const fn characters_max(self) -> usize {
        if matches!(self, Self::Interface) { INTERFACE_CHARACTERS_MAX } else { NAME_CHARACTERS_MAX }
    }

    const fn owner(self) -> &'static str {
        match self {
            Self::Member => "",
            Self::Rack => " of a rack",
            Self::Server => " of a server",
            Self::Host => " of a host",
            Self::Interface => " of an interface",
            Self::Script => " of a fault script",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain_and_a_complaint_says_of_what() {
        let longest = "n".repeat(NAME_CHARACTERS_MAX);
        for name in ["n0", "0", "a_b.c-d", "n-", &longest] {
            assert_eq!(Named::Member.read(name), Ok(name.to_owned()));
        }
        let longer = "n".repeat(NAME_CHARACTERS_MAX + 1);
        for wrong in ["", "-x", "_x", "a b", "a--b", "ä", "a\0", &longer] {
            let complaint = Named::Server.read(wrong).expect_err(wrong);
            let (message, _) = complaint.finish();
            assert!(message.ends_with("is not a name of a server"), "{message}");
        }
        let longest = "e".repeat(INTERFACE_CHARACTERS_MAX);
        assert!(Named::Interface.read(&longest).is_ok());
        let complaint = Named::Interface.read(&(longest + "0")).expect_err("16 characters");
        assert_eq!(complaint.finish().1, "names of interfaces have at most 15 characters");
    }
}
