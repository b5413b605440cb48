//! The library, preloaded into programs of the system.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn library() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_device_files"))
}

/// Folder of device files with one device.
fn files() -> TempDir {
    let root = TempDir::new().expect("a folder");
    let device = root.path().join("sys/class/infiniband/rackloom0");
    std::fs::create_dir_all(&device).expect("folders");
    std::fs::write(device.join("node_type"), "1: CA\n").expect("a file");
    std::fs::create_dir_all(root.path().join("sys/class/infiniband_verbs")).expect("folders");
    let devices = root.path().join("dev/infiniband");
    std::fs::create_dir_all(&devices).expect("folders");
    std::os::unix::fs::symlink("/dev/null", devices.join("uverbs0")).expect("a link");
    root
}

fn run(root: &Path, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("LD_PRELOAD", library()).env("RACKLOOM_DEVICE_FILES", root);
    command.output().expect("a shell")
}

fn printed(root: &Path, script: &str) -> String {
    let output = run(root, script);
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn programs_find_device_files() {
    let root = files();
    let printed = |script: &str| printed(root.path(), script);
    assert_eq!(printed("cat /sys/class/infiniband/rackloom0/node_type"), "1: CA\n");
    assert_eq!(printed("ls /sys/class/infiniband"), "rackloom0\n");
    assert_eq!(printed("ls -l /sys/class/infiniband | grep -c rackloom0"), "1\n");
    assert_eq!(printed("cd /sys/class/infiniband/rackloom0 && cat node_type"), "1: CA\n");
    // A character device that may be read and written.
    assert_eq!(
        printed("test -c /dev/infiniband/uverbs0 && test -w /dev/infiniband/uverbs0 && echo yes"),
        "yes\n"
    );
}

/// NCCL and UCX call the function of the C library. Utilities follow links by themselves.
#[test]
fn the_real_path_of_a_device_is_a_folder() {
    let root = files();
    let source = root.path().join("real.c");
    let text = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *path = realpath(\"/sys/class/infiniband/rackloom0\", NULL); \
                return !path || puts(path) < 0; }\n";
    std::fs::write(&source, text).expect("a file");
    let program = root.path().join("real");
    let built =
        Command::new("cc").arg("-O2").arg(&source).arg("-o").arg(&program).status().expect("a compiler");
    assert!(built.success());
    let real = printed(root.path(), program.to_str().expect("a plain path"));
    let folder = root.path().canonicalize().expect("a folder");
    assert_eq!(real.trim(), folder.join("sys/class/infiniband/rackloom0").to_str().expect("a plain path"));
}

#[test]
fn other_paths_stay_where_they_are() {
    let root = files();
    for script in [
        "cat /sys/class/infiniband_ucma",
        "cat /sys/class/infiniband/none",
        "cat /dev/infinibandx",
        "ls /dev/infiniband/uverbs1",
    ] {
        assert!(!run(root.path(), script).status.success(), "{script}");
    }
    assert_eq!(
        printed(root.path(), "readlink /proc/self/exe | grep -c readlink"),
        printed(root.path(), "echo 1")
    );
    let long = "x".repeat(4090);
    assert!(!run(root.path(), &format!("cat /dev/infiniband/{long}")).status.success());
    // Without the folder the library does nothing.
    assert!(!run(Path::new(""), "ls /sys/class/infiniband/rackloom0").status.success());
}

/// Functions of old programs and those that compilers put in place of others are there as well.
#[test]
fn every_name_of_the_list_is_a_function_of_the_library() {
    let map = include_str!("../device_files.map");
    let names = map
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|name| !name.contains(['*', '}']));
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output().expect("nm");
    let defined = String::from_utf8(output.stdout).expect("text");
    let defined: Vec<_> =
        defined.lines().filter_map(|line| line.rsplit_once(' ')).map(|(_, name)| name).collect();
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert!(names.len() > 30 && names.contains(&"__xstat"));
    assert_eq!(defined, names);
}
