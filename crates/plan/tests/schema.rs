//! Tests of the JSON schema against the reader and the shipped racks.

mod validator;

use std::collections::BTreeSet;
use std::path::Path;

use rackloom_plan::{Plan, schema};
use serde_json::Value;
use validator::{errors, resolved};

const EVERY_KEY: &str = include_str!("every-key.yaml");
const ALTERNATIVES: &str = include_str!("every-key-alternatives.yaml");

/// Returns the YAML text as an editor parses it.
fn instance(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn accept(text: &str, what: &str) {
    Plan::parse(text, what).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(errors(&schema(), &instance(text)), [] as [String; 0], "{what}");
}

#[test]
fn every_shipped_rack_and_every_example_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("topologies")).unwrap() {
        let path = entry.unwrap().path();
        accept(&std::fs::read_to_string(&path).unwrap(), &path.display().to_string());
        count += 1;
    }
    assert!(count >= 9, "{count} racks are shipped");
    let document = std::fs::read_to_string(root.join("docs/topology-file.md")).unwrap();
    accept(document.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap(), "example");
}

#[test]
fn the_reader_and_the_schema_accept_every_key() {
    let schema = schema();
    let mut used = BTreeSet::new();
    for text in std::iter::once(EVERY_KEY).chain(ALTERNATIVES.split("---\n")) {
        accept(text, "every key");
        walk(&schema, &schema, &instance(text), "rack", &mut used);
    }
    let mut declared: BTreeSet<String> = keys(&schema, "rack").collect();
    for (name, table) in schema["$defs"].as_object().unwrap() {
        declared.extend(keys(table, name));
    }
    assert!(declared.len() > 80, "{}", declared.len());
    assert_eq!(declared.difference(&used).collect::<Vec<_>>(), [] as [&String; 0], "no rack uses these");
}

fn keys(table: &Value, name: &str) -> impl Iterator<Item = String> {
    table["properties"].as_object().unwrap().keys().map(move |key| format!("{name}: {key}"))
}

/// Collects the used keys of each table.
fn walk(root: &Value, schema: &Value, instance: &Value, name: &str, used: &mut BTreeSet<String>) {
    let name = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| path.strip_prefix("#/$defs/"))
        .unwrap_or(name);
    let schema = resolved(root, schema);
    for form in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        walk(root, form, instance, name, used);
    }
    for item in instance.as_array().into_iter().flatten() {
        if let Some(items) = schema.get("items") {
            walk(root, items, item, name, used);
        }
    }
    for (key, value) in instance.as_object().into_iter().flatten() {
        if let Some(known) = schema.get("properties").and_then(|known| known.get(key)) {
            used.insert(format!("{name}: {key}"));
            walk(root, known, value, name, used);
        } else if let Some(other) = schema.get("additionalProperties").filter(|other| other.is_object()) {
            walk(root, other, value, name, used);
        }
    }
}

#[test]
fn a_value_that_the_schema_refuses_is_refused_by_the_reader() {
    for (line, path) in [
        ("sede: 7", "/sede"),
        ("seed: -1", "/seed"),
        ("seed: many", "/seed"),
        ("name: bad rack", "/name"),
        ("ring_bytes: 1mib", "/ring_bytes"),
        ("ring_bytes: 1024", "/ring_bytes"),
        ("link: {delay: 5 fortnights}", "/link/delay"),
        ("link: {rate: fast}", "/link/rate"),
        ("link: {loss: 1.5}", "/link/loss"),
        ("links: {n0-n1: {}}", "/links/n0-n1"),
        ("links: {n0--n1#0: {}}", "/links/n0--n1#0"),
        ("links: {n0--n1: {los: 1%}}", "/links/n0--n1/los"),
        ("wire: tin-can", "/wire"),
        ("job: dance", "/job"),
        ("job: {litmus: {}, latency: {}}", "/job"),
        ("job: {collective: {op: mean}}", "/job"),
        ("defaults: {memory: {huge_pages: maybe}}", "/defaults/memory"),
        ("timers: {up_count: 101}", "/timers"),
        ("tenants: {one: {memory_max: 1GiB}}", "/tenants/one"),
        ("servers: {box: n0}", "/servers/box"),
        ("groups: {g: {tenant: 1}}", "/groups/g"),
        ("expect: {verdict: maybe}", "/expect/verdict"),
    ] {
        let text = match line.starts_with("name") {
            true => format!("{line}\nshape: {{ring: {{nodes: 4}}}}\n"),
            false => format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{line}\n"),
        };
        assert!(Plan::parse(&text, "rack").is_err(), "the reader takes {line}");
        let found = errors(&schema(), &instance(&text));
        assert!(
            found.iter().any(|complaint| complaint.starts_with(&format!("{path}:"))),
            "{line}: {found:?}"
        );
    }
    for text in
        ["name: r", "shape: {ring: {nodes: 4}}", "name: r\nshape: {ring: {nodes: 4}, star: {nodes: 4}}"]
    {
        assert!(!errors(&schema(), &instance(text)).is_empty(), "{text}");
    }
}
