//! Harness of the fuzz targets: mutates a corpus, runs a check on each input, and keeps an input that fails.
//!
//! A target has seeds and a check. The harness first runs the seeds and the files of `crates/fuzz/corpus/TARGET`, then inputs that it
//! makes from them. Stable Rust offers no coverage of branches. The harness uses the outcomes instead: a check returns a short text, and an
//! input with a new outcome becomes a seed for further mutations. Numbers within an outcome do not count.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `RACKLOOM_FUZZ_SEED` | seed of the mutations | 1 |
//! | `RACKLOOM_FUZZ_SECONDS` | time per target | 2 |
//! | `RACKLOOM_FUZZ_INPUT` | file with the only input to run | |
//! | `RACKLOOM_FUZZ_FOLDER` | folder for inputs that fail | `fuzz` in the target directory |
//!
//! Equal seeds make equal inputs in equal order. Each input is in the file `TARGET.current` while it runs, so an input that ends the
//! process or does not return is known too.
//!
//! The harness contains no targets. Linking it replaces the global allocator by one that counts.

mod allocation;
mod mutation;

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::mutation::{Mutation, mutated, mutation};

/// Number of mutations of one input at most.
const MUTATIONS_MAX: usize = 6;
/// Number of seeds, and of inputs that had a new outcome, at most.
const POOL_MAX: usize = 2048;
/// Number of steps that shrink an input that fails, at most.
const SHRINK_STEPS_MAX: usize = 500;
/// Longest time that one input may take.
const CASE_TIME_MAX: Duration = Duration::from_secs(10);

/// A fuzz target: where inputs come from, and their limits.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the target, of its corpus folder and of the files with failing inputs.
    pub name: &'static str,
    /// Inputs to begin with. At least one of them should be accepted.
    pub seeds: Vec<Vec<u8>>,
    /// Pieces that are inserted into inputs, keywords for example.
    pub tokens: &'static [&'static str],
    /// Longest input in bytes.
    pub input_bytes_max: usize,
    /// Limit of the memory that the check allocates at one time.
    pub memory: MemoryLimit,
}

/// Limit of memory: a constant, and an amount per byte of input.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimit {
    /// Constant part in bytes.
    pub base_bytes: usize,
    /// Bytes per byte of input.
    pub per_input_byte: usize,
}

impl MemoryLimit {
    fn bytes(self, input: &[u8]) -> usize {
        self.base_bytes + self.per_input_byte * input.len()
    }
}

impl Target {
    /// Runs the target until its time is over.
    ///
    /// `check` returns the outcome of one input as a short text, and panics if a property does not hold.
    ///
    /// # Panics
    /// If an input fails. The message names its file and the command that repeats it.
    pub fn run(&self, check: impl Fn(&[u8]) -> String) {
        install_quiet_hook();
        if let Some(path) = std::env::var_os("RACKLOOM_FUZZ_INPUT") {
            let input = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            println!("fuzz {}: {}", self.name, self.outcome(&input, &check));
            return;
        }
        let session = Session::begin(self, &check);
        let end = Instant::now() + Duration::from_secs(number("RACKLOOM_FUZZ_SECONDS", 2));
        session.run_until(end);
    }

    /// Runs the check, and compares time and memory with their limits.
    fn outcome(&self, input: &[u8], check: &impl Fn(&[u8]) -> String) -> String {
        let begin = Instant::now();
        let (outcome, peak_bytes) = allocation::peak_of(|| check(input));
        let limit = self.memory.bytes(input);
        assert!(peak_bytes <= limit, "{peak_bytes} bytes allocated, the limit is {limit}");
        assert!(begin.elapsed() <= CASE_TIME_MAX, "the input took {:?}", begin.elapsed());
        outcome
    }
}

/// One run of a target.
struct Session<'s, C> {
    target: &'s Target,
    check: &'s C,
    folder: PathBuf,
    current: File,
    pool: Vec<Vec<u8>>,
    outcomes: HashSet<u64>,
    runner: TestRunner,
    inputs: u64,
}

/// Drawn input: a mutation of two known ones.
#[derive(Clone, Debug)]
struct DrawnInput {
    /// Number of an input, modulo the number of known ones.
    base: usize,
    /// Number of the input from which parts are taken.
    other: usize,
    mutations: Vec<Mutation>,
}

impl<'s, C: Fn(&[u8]) -> String> Session<'s, C> {
    fn begin(target: &'s Target, check: &'s C) -> Self {
        let seed = number("RACKLOOM_FUZZ_SEED", 1);
        announce(&format!("fuzz {}: RACKLOOM_FUZZ_SEED={seed}", target.name));
        let folder = folder();
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let current = folder.join(format!("{}.current", target.name));
        let current = File::create(&current).unwrap_or_else(|error| panic!("{}: {error}", current.display()));
        let mut bytes = [0x5a; 16];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::XorShift, &bytes);
        let runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
        let pool: Vec<_> = target.seeds.iter().cloned().chain(corpus(target.name)).collect();
        assert!(!pool.is_empty(), "the target {} has no seeds", target.name);
        let outcomes = HashSet::new();
        Self { target, check, folder, current, pool, outcomes, runner, inputs: 0 }
    }

    fn run_until(mut self, end: Instant) {
        for seed in self.pool.clone() {
            if let Err(reason) = self.attempt(&seed) {
                self.fail(&seed, &reason);
            }
        }
        let mutations = prop::collection::vec(mutation(), 1..=MUTATIONS_MAX);
        let strategy = (any::<usize>(), any::<usize>(), mutations)
            .prop_map(|(base, other, mutations)| DrawnInput { base, other, mutations });
        while Instant::now() < end {
            let mut tree = strategy.new_tree(&mut self.runner).expect("every input can be made");
            let input = self.input(&tree.current());
            match self.attempt(&input) {
                Ok(is_new) if is_new && self.pool.len() < POOL_MAX => self.pool.push(input),
                Ok(_) => {}
                Err(reason) => {
                    let (input, reason) = self.shrink(&mut tree, input, reason);
                    self.fail(&input, &reason);
                }
            }
        }
        let (name, inputs, outcomes) = (self.target.name, self.inputs, self.outcomes.len());
        announce(&format!("fuzz {name}: {inputs} inputs, {outcomes} different outcomes"));
        // The file is for processes that end early.
        let _ = std::fs::remove_file(self.folder.join(format!("{name}.current")));
    }

    fn input(&self, drawn: &DrawnInput) -> Vec<u8> {
        let DrawnInput { base, other, mutations } = drawn;
        let (base, other) = (&self.pool[base % self.pool.len()], &self.pool[other % self.pool.len()]);
        mutated(base, other, mutations, self.target.tokens, self.target.input_bytes_max)
    }

    /// Runs one input. Returns whether its outcome is new, or the reason for a failure.
    fn attempt(&mut self, input: &[u8]) -> Result<bool, String> {
        self.inputs += 1;
        let written = self.current.set_len(0).and_then(|()| self.current.write_all_at(input, 0));
        written.unwrap_or_else(|error| panic!("{}.current: {error}", self.target.name));
        QUIET.set(true);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.target.outcome(input, self.check)));
        QUIET.set(false);
        let outcome = outcome.map_err(|panic| message(panic.as_ref()))?;
        Ok(self.outcomes.insert(class(&outcome)))
    }

    /// Returns the smallest input that was found to fail, and the reason.
    fn shrink(
        &mut self,
        tree: &mut impl ValueTree<Value = DrawnInput>,
        mut input: Vec<u8>,
        mut reason: String,
    ) -> (Vec<u8>, String) {
        let mut is_simpler = tree.simplify();
        for _ in 0..SHRINK_STEPS_MAX {
            if !is_simpler {
                break;
            }
            let smaller = self.input(&tree.current());
            is_simpler = match self.attempt(&smaller) {
                Ok(_) => tree.complicate(),
                Err(next) => {
                    (input, reason) = (smaller, next);
                    tree.simplify()
                }
            };
        }
        (input, reason)
    }

    fn fail(&self, input: &[u8], reason: &str) -> ! {
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let path = self.folder.join(format!("{}-{:016x}", self.target.name, hasher.finish()));
        std::fs::write(&path, input).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        panic!(
            "{}: {reason}\ninput {}: {:?}\nit is in {path}; hint: repeat it with RACKLOOM_FUZZ_INPUT={path}, and copy it to \
             crates/fuzz/corpus/{} when it is repaired",
            self.target.name,
            self.inputs,
            String::from_utf8_lossy(&input[..input.len().min(400)]),
            self.target.name,
            path = path.display()
        );
    }
}

/// Returns the files of a target's corpus, in the order of their names. A target without a folder has none.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    if !folder.exists() { Vec::new() } else { files(&folder, "") }
}

/// Returns the content of all files of a folder with this ending of the name, in the order of their names.
///
/// # Panics
/// If the folder or a file cannot be read.
#[must_use]
pub fn files(folder: &Path, ending: &str) -> Vec<Vec<u8>> {
    let failed = |error| -> ! { panic!("{}: {error}", folder.display()) };
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| failed(error));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap_or_else(|error| failed(error)).path()).collect();
    paths.retain(|path| path.is_file() && path.to_string_lossy().ends_with(ending));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap_or_else(|error| failed(error))).collect()
}

fn folder() -> PathBuf {
    std::env::var_os("RACKLOOM_FUZZ_FOLDER").map_or_else(
        || {
            let program = std::env::current_exe().expect("a test program has a path");
            program.ancestors().nth(3).expect("cargo puts it three folders deep").join("fuzz")
        },
        PathBuf::from,
    )
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")),
        Err(_) => default,
    }
}

/// Prints a line past the output capture of the test runner, so that it is there even if the process is killed.
fn announce(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns a hash of an outcome without its numbers.
fn class(outcome: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for character in outcome.chars().filter(|character| !character.is_ascii_digit()) {
        character.hash(&mut hasher);
    }
    hasher.finish()
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    let place = PLACE.take();
    let mut message = text.unwrap_or("a panic without a message").to_owned();
    let _ = write!(message, " ({place})");
    message
}

thread_local! {
    /// Set while a check runs: its panics are reported once, at the end.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// Source position of the last panic.
    static PLACE: Cell<String> = const { Cell::new(String::new()) };
}

/// Keeps panics of checks off the output, because a failing input is shrunk with hundreds of them.
fn install_quiet_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                PLACE.set(info.location().map(ToString::to_string).unwrap_or_default());
            } else {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &'static str) -> Target {
        let memory = MemoryLimit { base_bytes: 4096, per_input_byte: 16 };
        Target { name, seeds: vec![b"a seed".to_vec()], tokens: &["token"], input_bytes_max: 100, memory }
    }

    fn failure(target: &Target, check: impl Fn(&[u8]) -> String) -> String {
        let result = catch_unwind(AssertUnwindSafe(|| target.run(check)));
        message(result.expect_err("the target fails").as_ref())
    }

    #[test]
    fn an_input_that_fails_is_found_shrunk_and_kept() {
        let target = target("planted-panic");
        let reason = failure(&target, |input| {
            assert!(!input.windows(5).any(|window| window == b"token"), "the planted mistake");
            "fine".to_owned()
        });
        assert!(reason.contains("the planted mistake") && reason.contains("src/lib.rs"), "{reason}");
        let path = reason.split("RACKLOOM_FUZZ_INPUT=").nth(1).and_then(|rest| rest.split(',').next());
        let kept = std::fs::read(path.expect("the message names the file")).expect("the file is there");
        assert!(String::from_utf8_lossy(&kept).contains("token"));
        assert!(kept.len() <= "a seed".len() + "token".len(), "{kept:?} is not small");
    }

    #[test]
    fn memory_beyond_the_limit_fails() {
        let reason = failure(&target("planted-memory"), |input| {
            Vec::<u8>::with_capacity(if input.len() > 20 { 1 << 20 } else { 16 }).len().to_string()
        });
        assert!(reason.contains("bytes allocated, the limit is"), "{reason}");
    }

    #[test]
    fn equal_seeds_make_equal_inputs() {
        let inputs = || {
            let (target, check) = (target("repeat"), |input: &[u8]| format!("{}", input.len() % 7));
            let mut session = Session::begin(&target, &check);
            let strategy = (any::<usize>(), any::<usize>(), prop::collection::vec(mutation(), 1..4));
            let mut drawn = || strategy.new_tree(&mut session.runner).unwrap().current();
            let drawn: Vec<_> = (0..200).map(|_| drawn()).collect();
            let drawn =
                drawn.into_iter().map(|(base, other, mutations)| DrawnInput { base, other, mutations });
            drawn.map(|drawn| session.input(&drawn)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(), inputs());
    }
}
