//! Programs of C and of the distribution that load the library.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Library, compile, has_headers, printed, skip};

/// Compiles a program of this folder and links it with the library.
fn built(library: &Library, name: &str) -> PathBuf {
    let program = library.folder().join(name);
    let folder = format!("-L{}", library.folder().display());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).with_extension("c");
    compile(&source, &program, &[&folder, "-l:libibverbs.so.1"]);
    program
}

/// Returns a command on a seat.
fn on_seat(library: &Library, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = library.command(program);
    command.env("RACKLOOM_SEAT", "n3").env("RACKLOOM_RANK", "3");
    command
}

/// Checks that a program counts at least so many checks, and none that failed.
fn passes(command: &mut Command, least: u32) {
    let text = printed(command);
    let checks = text.split(' ').next().and_then(|count| count.parse().ok());
    assert!(checks >= Some(least), "{text}");
    assert!(text.ends_with(" checks, 0 failed\n"), "{text}");
}

#[test]
fn a_program_in_c_uses_connections_and_datagrams_within_its_process() {
    const NAME: &str = "a_program_in_c_uses_connections_and_datagrams_within_its_process";
    if !has_headers(NAME) {
        return;
    }
    let library = Library::new();
    let program = built(&library, "loopback");
    // Without a seat there is no device, and that is no error.
    assert_eq!(printed(&mut library.command(&program)), "no device\n");
    passes(&mut on_seat(&library, &program), 200);
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip(NAME, "valgrind is not installed");
        return;
    }
    let mut checked = on_seat(&library, "valgrind");
    // The thread for retries lives as long as the process, so its memory is no loss.
    checked.args(["-q", "--leak-check=full", "--errors-for-leak-kinds=definite", "--error-exitcode=9"]);
    passes(checked.arg(&program), 200);
}

#[test]
fn queue_pairs_of_two_processes_of_a_seat_are_not_mistaken_for_each_other() {
    if !has_headers("queue_pairs_of_two_processes_of_a_seat_are_not_mistaken_for_each_other") {
        return;
    }
    let library = Library::new();
    let program = built(&library, "numbers");
    let numbers = [(); 3].map(|()| printed(&mut on_seat(&library, &program)));
    assert!(numbers.iter().all(|number| number.trim().parse::<u32>().is_ok()), "{numbers:?}");
    // Numbers are random, of 24 bits.
    assert!(numbers.iter().any(|number| *number != numbers[0]), "{numbers:?}");
}

#[test]
fn threads_of_a_program_use_queue_pairs_at_the_same_time() {
    if !has_headers("threads_of_a_program_use_queue_pairs_at_the_same_time") {
        return;
    }
    let library = Library::new();
    passes(&mut on_seat(&library, built(&library, "threads")), 4);
}

/// Returns true if a utility is installed. Otherwise the test is skipped.
fn has_utility(test: &str, name: &str) -> bool {
    let is_there = Command::new(name).arg("--help").output().is_ok();
    if !is_there {
        skip(test, &format!("{name} is not installed (package ibverbs-utils)"));
    }
    is_there
}

#[test]
fn the_list_of_devices_names_the_device_of_a_seat() {
    if !has_utility("the_list_of_devices_names_the_device_of_a_seat", "ibv_devices") {
        return;
    }
    let library = Library::new();
    let without = printed(&mut library.command("ibv_devices"));
    assert!(!without.contains("rackloom0"), "{without}");
    let text = printed(library.command("ibv_devices").env("RACKLOOM_SEAT", "n3").env("RACKLOOM_RANK", "3"));
    let line = text.lines().last().expect("a line");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["rackloom0", "02524b0000000004"]);
}

#[test]
fn the_information_utility_prints_all_of_the_device() {
    if !has_utility("the_information_utility_prints_all_of_the_device", "ibv_devinfo") {
        return;
    }
    let library = Library::new();
    let mut command = library.command("ibv_devinfo");
    command.arg("-v").env("RACKLOOM_SEAT", "n3").env("RACKLOOM_RANK", "2").env("RACKLOOM_NODES", "0,1,3");
    let text = printed(&mut command);
    let value = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).split_once(':').expect("a value").1.trim().to_owned()
    };
    assert_eq!(value("hca_id"), "rackloom0");
    assert_eq!(value("node_guid"), "0252:4b00:0000:0004");
    assert_eq!(value("atomic_cap"), "ATOMIC_GLOB (2)");
    assert_eq!(value("state"), "PORT_ACTIVE (4)");
    assert_eq!(value("link_layer"), "Ethernet");
    assert_eq!(value("active_mtu"), "4096 (5)");
    assert!(text.contains("::ffff:10.82.0.4, RoCE v2"), "{text}");
}

/// Returns the libraries of the distribution that are installed and bind names of libibverbs.
fn dependents() -> Vec<PathBuf> {
    let folder = Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let names = ["libmlx5.so.1", "libmlx4.so.1", "libefa.so.1", "libmana.so.1", "librdmacm.so.1"];
    names.iter().map(|name| folder.join(name)).filter(|file| file.exists()).collect()
}

#[test]
fn libraries_of_the_distribution_find_all_names_that_they_bind() {
    const NAME: &str = "libraries_of_the_distribution_find_all_names_that_they_bind";
    let files = dependents();
    if files.is_empty() || Command::new("ldd").arg("--version").output().is_err() {
        skip(NAME, "no such library is installed (packages ibverbs-providers and librdmacm1), or no ldd");
        return;
    }
    let library = Library::new();
    for file in files {
        let output = library.command("ldd").arg("-r").arg(&file).output().expect("ldd starts");
        let text =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(text.contains(&library.file().display().to_string()), "{}: {text}", file.display());
        assert!(
            !text.contains("undefined symbol") && !text.contains("not found"),
            "{}: {text}",
            file.display()
        );
    }
}
