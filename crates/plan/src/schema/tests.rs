//! Tests that declared keys, the readers and the document agree.

use super::*;
use crate::model::plan::Plan;
use crate::setting::name::Named;

/// Returns racks that use every key, each on a separate line with its value, if it is a single one.
fn racks() -> Vec<&'static str> {
    let alternatives = include_str!("../../tests/every-key-alternatives.yaml").split("---\n");
    std::iter::once(include_str!("../../tests/every-key.yaml")).chain(alternatives).collect()
}

/// Adds the table and all tables that can be below it, each once.
fn tables(table: &'static Table, found: &mut Vec<&'static Table>) {
    if found.iter().any(|other| other.name == table.name) {
        return;
    }
    found.push(table);
    table.keys.iter().for_each(|key| below(&key.kind, found));
}

fn below(kind: &'static Kind, found: &mut Vec<&'static Table>) {
    match kind {
        Kind::Table(table) | Kind::List(table) | Kind::TableBy(_, table) | Kind::Servers(table) => {
            tables(table, found);
        }
        Kind::Either(forms) => forms.iter().for_each(|form| below(form, found)),
        _ => {}
    }
}

/// Returns a table as the document shows it.
fn shown_in_document(table: &Table) -> String {
    let mut text = "| key | value | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in table.keys {
        let Key { name, kind, meaning, .. } = key;
        text += &format!("| `{name}` | {} | {} | {meaning} |\n", kind.description(), key.default_shown());
    }
    text
}

#[test]
fn the_document_shows_every_table_as_it_is_declared() {
    shows_every_table("topology-file.md", &RACK);
}

#[test]
fn the_document_of_fault_scripts_shows_every_table_as_it_is_declared() {
    shows_every_table("fault-scripts.md", &FAULTS);
}

/// Compares the document with the declarations. With `RACKLOOM_WRITE_TABLES` in the environment it writes the tables first.
fn shows_every_table(file: &str, root: &'static Table) {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut document = std::fs::read_to_string(&path).unwrap();
    let mut declared = Vec::new();
    tables(root, &mut declared);
    if std::env::var_os("RACKLOOM_WRITE_TABLES").is_some() {
        declared.iter().for_each(|table| document = with_table(&document, table));
        std::fs::write(&path, &document).unwrap();
    }
    for table in &declared {
        let expected = format!("\n## `{}`\n", table.name);
        let (_, section) =
            document.split_once(&expected).unwrap_or_else(|| panic!("no section `{}`", table.name));
        let section = section.split("\n## ").next().unwrap_or_default();
        let expected = shown_in_document(table);
        assert!(section.contains(&expected), "the table of `{}` should be\n\n{expected}", table.name);
        assert_eq!(section.matches("\n| `").count(), table.keys.len(), "`{}` has more rows", table.name);
    }
    let headings = document.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    assert_eq!(headings.count(), declared.len(), "a section for a table that does not exist");
}

/// Returns the document with the rows of this table in its section.
fn with_table(document: &str, table: &Table) -> String {
    let heading = format!("\n## `{}`\n", table.name);
    let (before, section) =
        document.split_once(&heading).unwrap_or_else(|| panic!("no section `{}`", table.name));
    let start = section.find("| key |").unwrap_or_else(|| panic!("no table in `{}`", table.name));
    let length = section[start..].find("\n\n").map_or(section.len() - start, |length| length + 1);
    format!(
        "{before}{heading}{}{}{}",
        &section[..start],
        shown_in_document(table),
        &section[start + length..]
    )
}

/// Returns the value of a default, or `None` if the default is a sentence.
fn literal(default: &str) -> Option<&str> {
    let (value, rest) = match default.strip_prefix('`') {
        Some(quoted) => quoted.split_once('`')?,
        None => default.split_at(default.find(' ').unwrap_or(default.len())),
    };
    let is_alone = rest.is_empty() || rest == " (ours)" || rest.starts_with(';');
    (is_alone && (default.starts_with('`') || value.parse::<u64>().is_ok())).then_some(value)
}

#[test]
fn a_default_that_is_spelled_out_changes_nothing() {
    let base = "name: r\nshape: {ring: {nodes: 4}}\n";
    let hash = |text: &str| Plan::parse(text, "rack").unwrap_or_else(|error| panic!("{error}")).config_hash;
    let mut spelled_out = 0;
    let tables = [
        &RACK, &DEFAULTS, &LINK, &TIMERS, &TRANSPORT, &PATHS, &PACKING, &CREDITS, &MEMORY, &EXPECT, &LOCAL,
        &DEVICE,
    ];
    let jobs = [&LITMUS, &COLLECTIVE, &LATENCY, &BANDWIDTH, &TRAFFIC];
    for table in tables.into_iter().chain(jobs) {
        // With no settings, a job is equal to the job of its name alone.
        let bare = match table.name.split_once('.') {
            Some(("job", job)) => hash(&format!("{base}job: {job}\n")),
            _ => hash(base),
        };
        for key in table.keys {
            let default = key.default_shown();
            let Some(value) = literal(&default) else { continue };
            if key.name == "segments" {
                // It is refused without the algorithm that it belongs to.
                let job =
                    |more| hash(&format!("{base}job: {{collective: {{algorithm: ring-pipeline{more}}}}}\n"));
                assert_eq!(job(format!(", segments: {value}")), job(String::new()));
                continue;
            }
            let path = table.path_of(key.name);
            let path = if table.name == MEMORY.name { format!("defaults.{path}") } else { path };
            let (outer, inner) = path.rsplit_once('.').unwrap_or(("", &path));
            let opened: String =
                outer.split('.').filter(|key| !key.is_empty()).map(|key| format!("{{{key}: ")).collect();
            let setting = format!("{opened}{{{inner}: {value}}}{}", "}".repeat(opened.matches('{').count()));
            // The outermost braces are those of the file itself.
            let line = &setting[1..setting.len() - 1];
            assert_eq!(hash(&format!("{base}{line}\n")), bare, "{line}");
            spelled_out += 1;
        }
    }
    assert!(spelled_out > 40, "{spelled_out}");
}

/// A declaration alone brings a key into the schema, the list of `rackloom check`, the document, the encoding and the range check.
#[test]
fn one_declaration_brings_a_key_everywhere() {
    for (path, value, encoded) in [
        ("timers.hold_down", "5s", "timers.hold_down=5000000000"),
        ("transport.window_packets", "99", "transport.window_packets=99"),
        ("forwarding.queues", "by-input", "forwarding.queues=by-input"),
        ("link.pfc.quanta", "512", "links.n0--n1.pfc.quanta=512"),
        ("link.mac_latency", "20ns", "links.n0--n1.mac_latency=20"),
        ("local.latency", "1us", "local.latency=1000"),
        ("device.bulk_latency", "1us", "device.bulk_latency=1000"),
        ("watchdog", "5s", "watchdog=5000000000"),
        ("expect.retransmitted_max", "7", "expect.retransmitted_max=7"),
        ("job.traffic.messages", "3", "job.traffic.messages=3"),
    ] {
        let (table, key) = path.rsplit_once('.').unwrap_or((RACK.name, path));
        let plan = |value: &str| {
            let setting = format!("{path}={value}");
            let text = crate::with_settings("name: r\nshape: {ring: {nodes: 3}}\n", &[setting]);
            Plan::parse(&text, "rack")
        };
        let read = plan(value).unwrap_or_else(|error| panic!("{error}"));
        let listed = read.all_settings().into_iter().find(|setting| setting.key == path);
        let listed = listed.unwrap_or_else(|| panic!("{path} is not listed"));
        assert_eq!((listed.value.as_str(), listed.is_default), (value, false), "{path}");
        let encoding = read.canonical_encoding();
        assert!(encoding.lines().any(|line| line == encoded), "{encoded} in {encoding}");
        let schema = json::schema();
        let schema = if table == RACK.name { &schema } else { &schema["$defs"][table] };
        assert!(schema["properties"][key]["description"].is_string(), "{path} in the schema");
        let document =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/topology-file.md"));
        let section = document.unwrap();
        let (_, section) = section.split_once(&format!("\n## `{table}`\n")).expect("a section");
        assert!(section.contains(&format!("\n| `{key}` |")), "{path} in the document");
        let beyond = if value.ends_with('s') { "9999999s" } else { "99999999999999999999" };
        let beyond = if path == "forwarding.queues" { "by-magic" } else { beyond };
        assert!(plan(beyond).is_err(), "{path} has a range");
    }
}

#[test]
fn a_switch_has_some_of_the_keys_of_a_node() {
    assert!(SWITCH.names().all(|name| NODE.find(name).is_some()));
}

#[test]
fn every_key_is_read() {
    for rack in racks() {
        Plan::parse(rack, "every key").unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<&str> = rack.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some((key, value)) = line.split_once(": ").filter(|_| !line.starts_with('#')) else {
                continue;
            };
            // A value that is invalid for every key: its reader must report it, at this line.
            // Any text is a valid path, except an empty one.
            let is_path = key.trim() == "key_file";
            let value = if is_path { String::new() } else { format!("?{}", value.replace('"', "")) };
            let broken = format!("{key}: \"{value}\"");
            let text = [&lines[..index], &[broken.as_str()], &lines[index + 1..]].concat().join("\n");
            let error = Plan::parse(&text, "broken").expect_err(line);
            let number = u32::try_from(index + 1).unwrap();
            let is_reported = error.mistakes.iter().any(|mistake| mistake.line == number);
            assert!(is_reported, "{line} is not read:\n{error}");
        }
    }
}

#[test]
fn values_are_described_in_words() {
    for (kind, description) in [
        (Kind::Count(0, u64::MAX), "count"),
        (Kind::Count(1, u64::MAX), "count, at least 1"),
        (Kind::Size(0, 2048), "size, up to 2KiB"),
        (Kind::Rate(1000, 2000), "rate, 1kbit/s to 2kbit/s, or `unlimited`"),
        (Kind::ComputeRate(1000, 2_000_000), "rate of computation, 1kFLOP/s to 2MFLOP/s"),
        (Kind::Choice(&["auto", "never"]), "`auto`, `never`"),
        (Kind::Table(&CUSTOM_LINK), "table, see [shape.custom.links](#shapecustomlinks)"),
        (Kind::Either(&[Kind::Name(Named::Member), Kind::Flag]), "name; or `true`, `false`"),
    ] {
        assert_eq!(kind.description(), description);
    }
}
