//! JSON schemas that the command prints, and results that must match them.

use serde_json::Value;

use super::rackloom;

/// Returns the schema that `rackloom schema NAME` prints.
pub(crate) fn schema(name: &str) -> Value {
    let ended = rackloom(&["schema", name]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("the schema is JSON")
}

/// Returns the schema that allows only the fields that it lists, so that a result with an unlisted field is found.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            for value in fields.values_mut() {
                *value = closed(value.take());
            }
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = closed(item.take())),
        _ => {}
    }
    schema
}

/// Returns the mistakes of a result by the schema, in which no field may be unlisted.
pub(crate) fn mistakes(name: &str, result: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&closed(schema(name))).expect("a schema");
    validator.iter_errors(result).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Returns the paths of properties below `schema` that have no description.
pub(crate) fn undescribed(schema: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Value::Object(fields) = schema else { return found };
    for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}.{name}");
        if property["description"].as_str().is_none_or(str::is_empty) {
            found.push(path.clone());
        }
        found.extend(undescribed(property, &path));
    }
    for (name, definition) in fields.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        found.extend(undescribed(definition, name));
    }
    found
}
