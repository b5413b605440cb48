//! Validator for the part of JSON schema that the schema of rack files uses.
//!
//! It panics at an unknown keyword, so that the schema cannot use keywords that are not validated.

use regex::Regex;
use serde_json::Value;

/// Returns the errors of `instance`, by path. Empty if it is valid.
pub(crate) fn errors(schema: &Value, instance: &Value) -> Vec<String> {
    let mut found = Vec::new();
    judge(schema, schema, instance, "", &mut found);
    found
}

/// Resolves a reference to a schema.
pub(crate) fn resolved<'schema>(root: &'schema Value, schema: &'schema Value) -> &'schema Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => {
            let name = reference.strip_prefix("#/$defs/").expect("references lead to $defs");
            root["$defs"].get(name).unwrap_or_else(|| panic!("{reference} leads nowhere"))
        }
        None => schema,
    }
}

fn judge(root: &Value, schema: &Value, instance: &Value, path: &str, found: &mut Vec<String>) {
    let schema = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in schema {
        let fine = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                judge(root, resolved(root, &Value::Object(schema.clone())), instance, path, found);
                true
            }
            "anyOf" => array(rule).iter().any(|form| {
                let mut inner = Vec::new();
                judge(root, form, instance, path, &mut inner);
                inner.is_empty()
            }),
            "enum" => array(rule).contains(instance),
            "type" => is_of_type(instance, rule),
            "minimum" => instance.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => instance.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "pattern" => {
                let pattern = Regex::new(rule.as_str().unwrap()).unwrap();
                instance.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "maxLength" => instance.as_str().is_none_or(|text| text.len() as u64 <= rule.as_u64().unwrap()),
            "items" => {
                for (index, item) in instance.as_array().into_iter().flatten().enumerate() {
                    judge(root, rule, item, &format!("{path}/{index}"), found);
                }
                true
            }
            "minProperties" => size(instance).is_none_or(|size| size >= rule.as_u64().unwrap()),
            "maxProperties" => size(instance).is_none_or(|size| size <= rule.as_u64().unwrap()),
            "required" => instance
                .as_object()
                .is_none_or(|table| array(rule).iter().all(|key| table.contains_key(key.as_str().unwrap()))),
            "properties" | "additionalProperties" | "propertyNames" => {
                for (key, value) in instance.as_object().into_iter().flatten() {
                    let path = format!("{path}/{key}");
                    let known = schema.get("properties").and_then(|known| known.get(key));
                    match (keyword.as_str(), known) {
                        ("properties", Some(known)) => judge(root, known, value, &path, found),
                        ("propertyNames", _) => judge(root, rule, &Value::from(key.as_str()), &path, found),
                        ("additionalProperties", None) if *rule == Value::Bool(false) => {
                            found.push(format!("{path}: unknown"));
                        }
                        ("additionalProperties", None) => judge(root, rule, value, &path, found),
                        _ => {}
                    }
                }
                true
            }
            other => panic!("the validator does not know `{other}`"),
        };
        if !fine {
            found.push(format!("{path}: {keyword} {rule}"));
        }
    }
}

fn is_of_type(instance: &Value, rule: &Value) -> bool {
    match rule.as_str().expect("one type") {
        "object" => instance.is_object(),
        "array" => instance.is_array(),
        "string" => instance.is_string(),
        "boolean" => instance.is_boolean(),
        "number" => instance.is_number(),
        "integer" => instance.is_u64() || instance.is_i64(),
        other => panic!("the validator does not know the type `{other}`"),
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn size(instance: &Value) -> Option<u64> {
    instance.as_object().map(|table| table.len() as u64)
}
