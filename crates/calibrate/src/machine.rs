//! Description of the machine, as the system reports it.

use std::fs::read_to_string;

use rustix::system::uname;

use crate::processors;

/// Facts that belong beside every figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of processors that this process may use.
    pub processors: usize,
    /// Model of the processors, as the kernel names it.
    pub model: String,
    /// Release of the kernel.
    pub kernel: String,
    /// True if the processor reports a hypervisor.
    pub is_guest: bool,
}

impl Machine {
    /// Returns the description of this machine. Unavailable facts are `unknown`.
    #[must_use]
    pub fn here() -> Self {
        let facts = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = field(&facts, "model name").or_else(|| field(&facts, "CPU part"));
        let flags = field(&facts, "flags").unwrap_or_default();
        Self {
            processors: processors::allowed().map_or(1, |allowed| allowed.len()),
            model: model.unwrap_or("unknown").to_owned(),
            kernel: uname().release().to_string_lossy().into_owned(),
            is_guest: flags.split_whitespace().any(|flag| flag == "hypervisor"),
        }
    }
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// Returns the load average of the last minute: the number of tasks that ran or were ready to run.
#[must_use]
pub fn load() -> Option<f64> {
    read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_by_their_names() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(field(text, "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(field(text, "model"), None);
    }

    #[test]
    fn this_machine_has_a_processor_and_a_kernel() {
        let machine = Machine::here();
        assert!(machine.processors >= 1 && machine.kernel.starts_with(|first: char| first.is_ascii_digit()));
    }
}
