//! The JSON Schema of scenario files, for editors and for programs that write scenarios.
//!
//! It is made from the tables that the loader reads, so the two cannot drift apart. A schema
//! cannot say everything that the loader checks: names that must exist, sums, orders of marks.

use crate::load::raw::Scenario;
use crate::load::{PluginNames, BUILT_IN};
use crate::names::{Knob, KnobForm, CACHE_CONTROLS};
use crate::page_size::PageSize;
use schemars::generate::SchemaSettings;
use schemars::transform::{transform_subschemas, Transform};
use schemars::{json_schema, Schema};
use serde_json::{json, Map, Value};

/// The JSON Schema (draft 2020-12) of a scenario file, for a program that registers these policies.
pub fn schema(plugins: &PluginNames) -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Scenario>();
    NoNulls.transform(&mut schema);
    schema.insert("title".into(), json!("Pagetide scenario"));
    let mut schema = schema.to_value();
    for (kind, names) in [("groups", &plugins.groups), ("pages", &plugins.pages)] {
        let names = core::iter::once(BUILT_IN).chain(names.iter().map(String::as_str));
        let names: Vec<&str> = names.collect();
        for of in ["/$defs/Policy", "/properties/policy"] {
            let key = schema.pointer_mut(&format!("{of}/properties/{kind}"));
            if let Some(Value::Object(key)) = key {
                key.retain(|key, _| key == "description");
                key.insert("enum".into(), json!(names));
            }
        }
    }
    schema
}

/// TOML has no null: a key that is not set is absent.
struct NoNulls;

impl Transform for NoNulls {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|one| one != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".into(), only);
            }
        }
        if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
            choices.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
            if let [Value::Object(only)] = choices.as_slice() {
                let only = only.clone();
                object.remove("anyOf");
                for (key, value) in only {
                    object.entry(key).or_insert(value);
                }
            }
        }
        if object.get("default") == Some(&Value::Null) {
            object.remove("default");
        }
    }
}

/// Those that can be set before anything runs.
fn lasting(table: &[Knob]) -> Vec<Knob> {
    table.iter().copied().filter(|knob| !knob.form.is_action()).collect()
}

/// A table that takes the lasting knobs of `table` and of caches, flat or nested by the parts of their
/// names.
pub(crate) fn knobs(table: &[Knob]) -> Schema {
    let of_caches = lasting(CACHE_CONTROLS);
    let flat: Map<String, Value> = of_caches
        .iter()
        .map(|knob| (format!("^slab\\..+\\.{}$", knob.name), knob_schema(knob)))
        .collect();
    let mut properties = knob_properties(&lasting(table));
    properties.insert(
        "slab".into(),
        json!({
            "type": "object",
            "description": "Caches of kernel objects, by their names.",
            "additionalProperties": {
                "type": "object",
                "properties": knob_properties(&of_caches),
                "additionalProperties": false,
            },
        }),
    );
    json_schema!({
        "type": "object",
        "description": "Control files by the kernel's names, with the text to write.",
        "properties": properties,
        "patternProperties": flat,
        "additionalProperties": false,
    })
}

/// `schema`, extended with the knobs of `table` that can be set before anything runs.
pub(crate) fn with_controls(mut schema: Schema, table: &[Knob]) -> Schema {
    let object = schema.ensure_object();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.extend(knob_properties(&lasting(table)));
    }
    schema
}

/// Properties for the names in full, and for the tables that their parts make.
fn knob_properties(table: &[Knob]) -> Map<String, Value> {
    let mut properties = Map::new();
    for knob in table {
        properties.insert(knob.name.to_owned(), knob_schema(knob));
        nest(&mut properties, knob.name, knob);
    }
    properties
}

fn nest(properties: &mut Map<String, Value>, rest: &str, knob: &Knob) {
    let Some((head, tail)) = rest.split_once('.') else {
        properties.insert(rest.to_owned(), knob_schema(knob));
        return;
    };
    let table = properties.entry(head.to_owned()).or_insert_with(
        || json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    );
    if let Some(Value::Object(inner)) = table.get_mut("properties") {
        nest(inner, tail, knob);
    }
}

fn knob_schema(knob: &Knob) -> Value {
    let unit = if knob.unit.is_empty() { String::new() } else { format!(", {}", knob.unit) };
    let description = format!("{} Default: {}{unit}.", knob.doc, knob.default);
    // Two bounds move with the machine's page size, of which the schema knows nothing: the widest.
    let form = match (knob.form, knob.form_with(PageSize::Kib64)) {
        (KnobForm::Integer { min, .. }, KnobForm::Integer { max, .. }) => {
            KnobForm::Integer { min, max }
        }
        (form, _) => form,
    };
    match form {
        KnobForm::Integer { min, max } => json!({
            "description": description,
            "anyOf": [
                { "type": "integer", "minimum": min, "maximum": max },
                { "type": "string" }
            ]
        }),
        KnobForm::Integers { max } => json!({
            "description": description,
            "anyOf": [
                { "type": "array", "items": { "type": "integer" }, "maxItems": max },
                { "type": "string" }
            ]
        }),
        KnobForm::BytesOrMax | KnobForm::BytesOrMinusOne | KnobForm::Reclaim => json!({
            "description": description,
            "type": ["integer", "string"]
        }),
        KnobForm::Trigger { max: 1 } => json!({ "description": description, "enum": [1, "1"] }),
        KnobForm::Trigger { max } => {
            json!({ "description": description, "type": ["integer", "string"], "minimum": 1, "maximum": max })
        }
        KnobForm::Word(words) => json!({ "description": description, "enum": words }),
    }
}

/// Closes a schema that was put together from parts: no keys but theirs.
pub(crate) fn closed(mut schema: Schema, description: &str) -> Schema {
    let object = schema.ensure_object();
    object.remove("additionalProperties");
    object.insert("unevaluatedProperties".into(), json!(false));
    object.insert("description".into(), json!(description));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::raw::workload_keys;
    use crate::names::{Named, WorkloadKind, SYSCTLS};

    fn names(schema: &Value) -> Vec<&str> {
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn it_describes_every_table() {
        let schema = schema(&PluginNames::default());
        assert!(schema["$schema"].as_str().unwrap().contains("2020-12"));
        for key in ["name", "machine", "sysctl", "task", "variant", "reference", "report"] {
            assert!(names(&schema).contains(&key), "{key}");
        }
        assert_eq!(schema["required"], json!(["machine", "task"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        let machine = &schema["properties"]["machine"];
        assert_eq!(machine["properties"]["cpus"]["minimum"], json!(1));
        assert!(machine["properties"]["cpus"]["description"].as_str().unwrap().contains("CPUs"));
        assert_eq!(schema["$defs"]["Zone"]["required"], json!(["name", "present"]));
    }

    #[test]
    fn it_knows_the_knobs_in_both_spellings() {
        let schema = schema(&PluginNames::default());
        let sysctls = &schema["$defs"]["Sysctls"]["properties"];
        for knob in SYSCTLS {
            let is_key = !knob.form.is_action();
            assert_eq!(sysctls[knob.name]["description"].is_string(), is_key, "{}", knob.name);
            let mut nested = &schema["$defs"]["Sysctls"];
            for part in knob.name.split('.') {
                nested = &nested["properties"][part];
            }
            assert_eq!(nested["description"].is_string(), is_key, "{}", knob.name);
        }
        let of_caches = &schema["$defs"]["Sysctls"]["patternProperties"];
        assert!(of_caches["^slab\\..+\\.min_partial$"]["description"].is_string());
        assert!(of_caches["^slab\\..+\\.shrink$"].is_null());
        let nested = &sysctls["slab"]["additionalProperties"]["properties"];
        assert!(nested["cpu_partial"]["description"].is_string());
        let words = &sysctls["transparent_hugepage.enabled"]["enum"];
        assert_eq!(*words, json!(["always", "madvise", "never"]));
        let group = &schema["$defs"]["Group"]["properties"];
        assert!(group["memory"]["properties"]["swap"]["properties"]["max"].is_object());
        assert!(group["memory.swap.max"].is_object());
        assert!(group["name"].is_object());
        assert_eq!(group["at_start"]["type"], json!("boolean"));
        // What asks for something at once is no key of a group, but a task may write it.
        assert!(group["memory.reclaim"].is_null());
        assert!(group["memory"]["properties"]["reclaim"].is_null());
        let controls = schema["$defs"]["Task"].to_string();
        for name in ["memory.reclaim", "vm.swappiness", "vm.compact_memory"] {
            assert!(controls.contains(&format!("\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn it_has_every_policy() {
        let schema = schema(&PluginNames::default());
        let policy = &schema["$defs"]["Policy"]["properties"];
        let policy =
            if policy.is_null() { &schema["properties"]["policy"]["properties"] } else { policy };
        for key in ["watermarks", "soft_limit", "soft_limit_root", "soft_limit_direct"] {
            assert!(policy[key].is_object(), "{key}");
        }
        for key in ["soft_limit_node", "shrink_priority", "group_walk"] {
            assert!(policy[key].is_object(), "{key}");
        }
    }

    #[test]
    fn it_has_the_policies_that_are_registered() {
        let of = |plugins: &PluginNames| {
            let schema = schema(plugins);
            ["groups", "pages"].map(|kind| {
                let policy = &schema["$defs"]["Policy"]["properties"];
                let whole = &schema["properties"]["policy"]["properties"];
                let policy = if policy.is_null() { whole } else { policy };
                policy[kind]["enum"].clone()
            })
        };
        assert_eq!(of(&PluginNames::default()), [json!(["linux"]), json!(["linux"])]);
        let plugins = PluginNames { groups: vec!["mine".into()], ..PluginNames::default() };
        assert_eq!(of(&plugins), [json!(["linux", "mine"]), json!(["linux"])]);
    }

    #[test]
    fn every_workload_has_its_keys() {
        let schema = schema(&PluginNames::default());
        for holder in ["Task", "Phase"] {
            let holder = &schema["$defs"][holder];
            assert_eq!(holder["unevaluatedProperties"], json!(false));
            let text = holder.to_string();
            for kind in WorkloadKind::ALL {
                assert!(text.contains(&format!("\"const\":\"{}\"", kind.name())), "{text}");
                for key in workload_keys(*kind) {
                    assert!(text.contains(&format!("\"{key}\":")), "{key}");
                }
            }
        }
    }

    #[test]
    fn there_are_no_nulls() {
        assert!(!schema(&PluginNames::default()).to_string().contains("null"));
    }
}
