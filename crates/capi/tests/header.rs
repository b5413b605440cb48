//! `include/rackloom.h` is what the source says, and the exported symbols are what the header says.
//!
//! After a change of the source: `RACKLOOM_WRITE_HEADER=1 cargo test -p rackloom-capi --test header`.

use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationStyle, EnumConfig, Language, RenameRule};

/// Set to write the header instead of comparing it.
const WRITE: &str = "RACKLOOM_WRITE_HEADER";

/// Files with functions, in the order of the header.
const FILES: [&str; 25] = [
    "codes",
    "library",
    "fabric",
    "rack",
    "node",
    "region",
    "peer_region",
    "allocation",
    "leaks",
    "pool",
    "block_pool",
    "operation",
    "composite",
    "command_queue",
    "pending",
    "queue",
    "driver",
    "group/options",
    "group/membership",
    "group/derive",
    "group/rechoice",
    "group/reduction",
    "group/record",
    "group/collective",
    "group/persistent",
];

/// Names of types in C, by their names in Rust.
const TYPES: [(&str, &str); 46] = [
    ("ErrorCode", "rackloom_error"),
    ("Reason", "rackloom_reason"),
    ("CompletionRecord", "rackloom_completion"),
    ("FailureRecord", "rackloom_failure"),
    ("TextHandle", "rackloom_text"),
    ("FabricHandle", "rackloom_fabric"),
    ("RackHandle", "rackloom_rack"),
    ("RackOptions", "rackloom_rack_options"),
    ("NodeHandle", "rackloom_node"),
    ("CountersRecord", "rackloom_counters"),
    ("RegionHandle", "rackloom_region"),
    ("Address", "rackloom_address"),
    ("LocalSlice", "rackloom_slice"),
    ("RegionSettings", "rackloom_region_options"),
    ("PeerRegionHandle", "rackloom_peer_region"),
    ("ExportedRegion", "rackloom_exported_region"),
    ("AttributesRecord", "rackloom_pointer_attributes"),
    ("PoolHandle", "rackloom_pool"),
    ("PoolSettings", "rackloom_pool_options"),
    ("PoolStatistics", "rackloom_pool_statistics"),
    ("LeakFunction", "rackloom_leak_function"),
    ("BlockPoolHandle", "rackloom_block_pool"),
    ("BlockPoolSettings", "rackloom_block_pool_options"),
    ("BlockRecord", "rackloom_block"),
    ("CommandQueueHandle", "rackloom_command_queue"),
    ("CommandRecord", "rackloom_command"),
    ("CommandRingRecord", "rackloom_command_ring"),
    ("PieceRecord", "rackloom_piece"),
    ("StridedRecord", "rackloom_strided"),
    ("SignalRecord", "rackloom_signal"),
    ("Operation", "rackloom_operation"),
    ("PendingHandle", "rackloom_pending"),
    ("QueueHandle", "rackloom_queue"),
    ("DriverHandle", "rackloom_driver"),
    ("StoreRecord", "rackloom_store_entry"),
    ("GroupHandle", "rackloom_group"),
    ("GroupSettings", "rackloom_group_options"),
    ("ReductionHandle", "rackloom_reduction"),
    ("ReductionFunction", "rackloom_reduction_function"),
    ("PersistentHandle", "rackloom_persistent"),
    ("RechoiceRecord", "rackloom_rechoice"),
    ("CandidateRecord", "rackloom_candidate"),
    ("CollectiveRecord", "rackloom_collective"),
    ("CollectiveHandle", "rackloom_collective_request"),
    ("usize", "size_t"),
    ("isize", "ptrdiff_t"),
];

const HEAD: &str = "\
/* rackloom.h: the C library of Rackloom. docs/c-library.md is its guide.
 *
 * Made from crates/capi by cbindgen. Do not edit it.
 *
 * Results. Each function that can fail returns a rackloom_error; RACKLOOM_ERROR_OK is 0. rackloom_last_error gives the text of the
 * last failure of the calling thread. Descriptions name errors without RACKLOOM_ERROR_. Each function may also return NULL_POINTER, and for
 * handles BAD_HANDLE, FREED_HANDLE and WRONG_HANDLE_KIND. After an error, results are unchanged unless the description says otherwise.
 *
 * Handles. Objects are 64-bit numbers. 0 is never a handle. A freed handle is recognised. An object that one thread uses while another
 * frees its handle ends with the last call that uses it.
 *
 * Threads. \"Threads: any\" means that any number of threads may call the function at the same time, also with one handle. \"Threads: one at
 * a time for each handle\" means that a second call with the handle returns IN_USE while the first one runs. No function may be called in
 * a signal handler. A process that forks does so before it has nodes.
 *
 * Pointers. Memory that a pointer names is valid for the call, and no other thread changes it meanwhile. Descriptions say where it must
 * stay valid for longer. Arrays of the program do not lie in regions, except that rackloom_region_register makes a region of them.
 *
 * Structures with a field `size` begin with zeros (= {0}) and get `size` = sizeof the structure, so that later versions may have more fields.
 */";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn config() -> Config {
    let mut config = Config {
        language: Language::C,
        cpp_compat: true,
        include_guard: Some("RACKLOOM_H".to_owned()),
        header: Some(HEAD.to_owned()),
        no_includes: true,
        sys_includes: ["stddef.h", "stdint.h"].map(str::to_owned).to_vec(),
        documentation_style: DocumentationStyle::Doxy,
        line_length: 120,
        tab_width: 4,
        enumeration: EnumConfig {
            rename_variants: RenameRule::QualifiedScreamingSnakeCase,
            ..EnumConfig::default()
        },
        usize_is_size_t: true,
        ..Config::default()
    };
    config.export.rename = TYPES.iter().map(|(rust, c)| ((*rust).to_owned(), (*c).to_owned())).collect();
    config.export.include = ["ErrorCode", "Reason"].map(str::to_owned).to_vec();
    config
}

/// Makes the header from the source.
fn header() -> String {
    let mut builder = Builder::new().with_config(config());
    for file in FILES {
        builder = builder.with_src(folder().join("src").join(file).with_extension("rs"));
    }
    let mut text = Vec::new();
    builder.generate().expect("cbindgen reads the source").write(&mut text);
    String::from_utf8(text).expect("the header is UTF-8")
}

fn checked_in() -> String {
    std::fs::read_to_string(folder().join("include/rackloom.h")).expect("the header is there")
}

#[test]
fn the_header_is_what_the_source_says() {
    let made = header();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(folder().join("include/rackloom.h"), &made).expect("the header can be written");
    }
    let known = checked_in();
    let different = made.lines().zip(known.lines()).position(|(made, known)| made != known);
    assert_eq!(
        different, None,
        "line {different:?} differs; hint: {WRITE}=1 cargo test -p rackloom-capi --test header"
    );
    assert_eq!(made.lines().count(), known.lines().count(), "hint: {WRITE}=1 writes the header");
}

/// Returns the files of a folder and of its folders.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the source is there").flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Returns the names of the functions that the source exports, and the descriptions above them.
fn exported() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in sources(&folder().join("src")) {
        let text = std::fs::read_to_string(path).expect("a source can be read");
        let file = syn::parse_file(&text).expect("a source of Rust");
        for item in file.items {
            let syn::Item::Fn(function) = item else { continue };
            let name = function.sig.ident.to_string();
            if name.starts_with("rackloom_") {
                found.push((name, description(&function.attrs)));
            }
        }
    }
    found
}

fn description(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value() + "\n"),
            _ => None,
        },
        _ => None,
    });
    lines.collect()
}

#[test]
fn each_function_of_the_source_is_in_the_header_and_states_its_threads() {
    let (header, functions) = (checked_in(), exported());
    assert!(functions.len() > 60, "functions are missing: {}", functions.len());
    for (name, description) in functions {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
        assert!(description.contains("\n Threads: "), "{name} does not say which threads may call it");
    }
}

/// Each function has a row in the guide.
#[test]
fn the_guide_names_each_function() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/c-library.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    let missing: Vec<_> = exported()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !guide.contains(&format!("`{name}`")))
        .collect();
    assert_eq!(missing, [""; 0]);
}

/// The soname has major and minor number, as `Cargo.toml` orders from cargo-c, and the guide names it.
#[test]
fn the_guide_names_the_soname_of_this_version() {
    let read = |path: &str| std::fs::read_to_string(folder().join(path)).expect("a file of the project");
    let (manifest, guide) = (read("Cargo.toml"), read("../../docs/c-library.md"));
    assert!(manifest.contains("\nversion_suffix_components = 2\n"));
    let soname = format!(
        "`librackloom.so.{}.{}` (soname)",
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR")
    );
    assert!(guide.contains(&soname), "{soname}");
}

/// Numbers of constants are part of the ABI: they are never changed, only added.
#[test]
fn no_two_constants_of_one_kind_have_one_number() {
    let header = checked_in();
    let mut seen = std::collections::BTreeSet::new();
    for line in header.lines() {
        let Some((name, number)) =
            line.strip_prefix("#define RACKLOOM_ALGORITHM_").and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        assert!(seen.insert(number.to_owned()), "{name} has the number {number} of another algorithm");
    }
    assert!(seen.len() >= 12, "the search finds too little: {seen:?}");
}
