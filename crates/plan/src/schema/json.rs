//! JSON schema of the declared keys, for editors that check and complete YAML.
//!
//! A schema describes single values: names, units and ranges of counts. It checks neither that a member of this name exists nor
//! that two values agree. The reader refuses all values that the schema refuses, and more.

use serde_json::{Map, Value, json};

use crate::schema::{By, Choose, FAULTS, Kind, RACK, REQUIRED, Table};
use crate::setting::name::NAME_CHARACTERS_MAX;
use crate::setting::quantity::{BYTES, COMPUTE_RATES, LENGTHS, RATES, TIMES};

/// Pattern of a name: no two `-` in a row.
const NAME: &str = "[A-Za-z0-9](-?[A-Za-z0-9_.])*-?";

/// Pattern of an IPv4 address.
const ADDRESS: &str = "[0-9]{1,3}(\\.[0-9]{1,3}){3}";

/// Returns the JSON schema (draft 2020-12) of rack files.
#[must_use]
pub fn schema() -> Value {
    of_file("rackloom rack file", &RACK)
}

/// Returns the JSON schema (draft 2020-12) of fault scripts.
#[must_use]
pub fn fault_schema() -> Value {
    of_file("rackloom fault script", &FAULTS)
}

fn of_file(title: &str, root: &'static Table) -> Value {
    let mut tables = Map::new();
    let mut schema = table(root, &mut tables);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema["$defs"] = Value::Object(tables);
    schema
}

/// Returns the schema of one table, and adds the tables below it to `tables`, by name.
fn table(table: &'static Table, tables: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for key in table.keys {
        let mut value = kind(&key.kind, tables);
        value["description"] = json!(description(key.meaning, &key.default_shown(), &key.kind));
        properties.insert(key.name.to_owned(), value);
    }
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let required: Vec<&str> = table.keys.iter().filter(|key| key.is_required()).map(|key| key.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if table.choose == Choose::One {
        schema["minProperties"] = json!(1);
        schema["maxProperties"] = json!(1);
    }
    schema
}

fn description(meaning: &str, default: &str, kind: &Kind) -> String {
    let mut text = meaning.to_owned();
    // Editors have no document to link to, and they show names and tables themselves.
    if matches!(
        kind,
        Kind::Size(..)
            | Kind::Time(..)
            | Kind::Rate(..)
            | Kind::ComputeRate(..)
            | Kind::Length(..)
            | Kind::Probability
    ) {
        text = format!("{text} A {}.", kind.description());
    }
    if !default.is_empty() && default != REQUIRED {
        text = format!("{text} Default: {default}.");
    }
    text
}

/// Returns the schema of one value.
fn kind(of: &Kind, tables: &mut Map<String, Value>) -> Value {
    match of {
        Kind::Name(_) => name(),
        Kind::Names => list(name()),
        Kind::Count(least, most) | Kind::Code(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Kind::Counts => list(json!({"type": "integer", "minimum": 1})),
        Kind::Size(..) => pattern(&BYTES.pattern()),
        Kind::Time(..) => pattern(&TIMES.pattern()),
        Kind::Length(..) => pattern(&LENGTHS.pattern()),
        Kind::Rate(..) => pattern(&format!("{}|unlimited", RATES.pattern())),
        Kind::ComputeRate(..) => pattern(&COMPUTE_RATES.pattern()),
        Kind::Factor(least, most) => {
            json!({"type": "number", "minimum": *least as f64 / 1e3, "maximum": *most as f64 / 1e3})
        }
        Kind::Probability => json!({"anyOf": [
            {"type": "number", "minimum": 0, "maximum": 1},
            pattern("[0-9]+(\\.[0-9]+)? *%"),
        ]}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Choice(names) => json!({"enum": names}),
        Kind::Table(below) => reference(below, tables),
        Kind::List(below) => list(reference(below, tables)),
        Kind::TableBy(by, below) => by_name(&by.pattern(), reference(below, tables)),
        Kind::Servers(below) => by_name(NAME, json!({"anyOf": [list(name()), reference(below, tables)]})),
        Kind::LinkNames => list(pattern(&By::Link.pattern())),
        Kind::Address => pattern(ADDRESS),
        Kind::ByLink(value) => by_name(&By::Link.pattern(), kind(value, tables)),
        Kind::CountsByDirection => {
            by_name(&format!("{NAME}->{NAME}"), list(json!({"type": "integer", "minimum": 1})))
        }
        Kind::Device => pattern("(cuda|fake):[0-9]+"),
        Kind::Path => pattern(".+"),
        Kind::Direction => pattern(&format!("{NAME}->{NAME}(#[1-9][0-9]*)?")),
        Kind::Where => json!({"anyOf": [{"type": "string"}, list(json!({"type": "string"}))]}),
        Kind::ChoiceList(names) => list(json!({"enum": names})),
        Kind::Either([first, second]) => json!({"anyOf": [kind(first, tables), kind(second, tables)]}),
    }
}

fn reference(below: &'static Table, tables: &mut Map<String, Value>) -> Value {
    if !tables.contains_key(below.name) {
        let schema = table(below, tables);
        tables.insert(below.name.to_owned(), schema);
    }
    json!({"$ref": format!("#/$defs/{}", below.name)})
}

fn name() -> Value {
    let mut name = pattern(NAME);
    name["maxLength"] = json!(NAME_CHARACTERS_MAX);
    name
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn by_name(keys: &str, values: Value) -> Value {
    json!({"type": "object", "propertyNames": pattern(keys), "additionalProperties": values})
}

/// Returns the schema of a string that this pattern describes completely.
fn pattern(inner: &str) -> Value {
    json!({"type": "string", "pattern": format!("^({inner})$")})
}

impl By {
    fn pattern(self) -> String {
        match self {
            Self::Member | Self::Group | Self::Host => NAME.to_owned(),
            Self::Link => format!("{NAME}--{NAME}(#[1-9][0-9]*)?"),
            Self::Tenant => "[0-9]+|0x[0-9A-Fa-f]+".to_owned(),
        }
    }
}
