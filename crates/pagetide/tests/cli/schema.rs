//! The JSON output of commands is valid under the schema of `pagetide schema --of`.

use crate::common::{TestDir, SMALL};
use serde_json::Value;

/// The violations of a schema by a value, for the subset of JSON Schema that Pagetide uses. Any
/// other keyword is a violation too.
fn mistakes(schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    for (word, of) in schema.as_object().unwrap() {
        match word.as_str() {
            "$schema" | "title" | "description" | "additionalProperties" => {}
            "type" => {
                let types = of.as_array().cloned().unwrap_or_else(|| vec![of.clone()]);
                let is = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    "null" => value.is_null(),
                    other => panic!("type {other}"),
                };
                if !types.iter().any(is) {
                    found.push(format!("{place}: {value} is not {of}"));
                }
            }
            "enum" if !of.as_array().unwrap().contains(value) => {
                found.push(format!("{place}: {value} is none of {of}"));
            }
            "enum" => {}
            "required" => {
                for key in of.as_array().unwrap().iter().filter_map(Value::as_str) {
                    if value.get(key).is_none() {
                        found.push(format!("{place}: no {key}"));
                    }
                }
            }
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    mistakes(of, item, &format!("{place}[{at}]"), found);
                }
            }
            "properties" => {}
            other => panic!("the schema uses {other}"),
        }
    }
    let Some(keys) = value.as_object() else { return };
    for (key, value) in keys {
        let place = format!("{place}.{key}");
        match (schema["properties"].get(key), schema.get("additionalProperties")) {
            (Some(of), _) => mistakes(of, value, &place, found),
            (None, Some(Value::Bool(false))) => found.push(format!("{place} is not in the schema")),
            (None, Some(of)) => mistakes(of, value, &place, found),
            (None, None) => {}
        }
    }
}

fn check(place: &TestDir, of: &str, args: &[&str]) -> Value {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let schema = json(&place.run(["schema", "--of", of]).quietly().stdout);
    let printed = json(&place.run(args).stdout);
    let mut found = Vec::new();
    mistakes(&schema, &printed, of, &mut found);
    assert_eq!(found, Vec::<String>::new());
    // The validator finds mistakes: the schema of another output does not match.
    let mut found = Vec::new();
    mistakes(&schema, &serde_json::json!({ "nonsense": 1 }), of, &mut found);
    assert!(!found.is_empty());
    printed
}

#[test]
fn outputs_are_valid_by_their_schemas() {
    let place = TestDir::with("small.toml", SMALL);
    check(&place, "run", &["run", "small.toml", "--format", "json"]);
    let cut = ["run", "small.toml", "--set", "time_limit=5ms", "--format", "json"];
    let cut = check(&place, "run", &cut);
    assert!(cut.to_string().contains("\"ended\":[\"cut\""), "{cut}");
    check(&place, "metrics", &["metrics", "--format", "json"]);
    check(&place, "explain", &["explain", "*", "--format", "json"]);
    place.write("in.csv", "1\n2\n3\n1\n");
    let import = ["trace", "import", "csv", "in.csv", "-o", "t.ptt"];
    assert_eq!(place.run(import).code, Some(0));
    check(&place, "mrc", &["mrc", "t.ptt", "--sizes", "1MiB,2MiB", "--format", "json"]);
    place.run(["schema", "--of", "nonsense"]).fails(2, &["run", "mrc", "metrics"]);
}
