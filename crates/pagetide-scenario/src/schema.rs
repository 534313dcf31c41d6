//! The JSON Schema of scenario files, for editors and for programs that write scenarios.
//!
//! The schema is generated from the tables that the loader reads, so that the two agree. It cannot
//! express every check of the loader: references to names, sums, the order of watermarks. A file
//! with a base has the same keys, but none of them is required.

use crate::load::raw::ScenarioTable;
use crate::load::{PluginNames, BASE_KEYS, BUILT_IN};
use schemars::generate::SchemaSettings;
use schemars::transform::{transform_subschemas, Transform};
use schemars::Schema;
use serde_json::{json, Value};

/// The JSON Schema (draft 2020-12) of a scenario file for a program with these registered policies.
pub fn schema(plugins: &PluginNames) -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<ScenarioTable>();
    NoNulls.transform(&mut schema);
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
    with_bases(schema)
}

/// The schema of files with and without a base, from that of files without one.
fn with_bases(mut whole: Value) -> Value {
    let take = |value: &mut Value, key| value.as_object_mut().and_then(|it| it.remove(key));
    let draft = take(&mut whole, "$schema");
    let mut part = whole.clone();
    relax(&mut part, "#/$defs/Extension/$defs/");
    let mut definitions = take(&mut whole, "$defs").unwrap_or_default();
    for key in BASE_KEYS {
        take(&mut whole["properties"], key);
    }
    definitions["Scenario"] = whole;
    definitions["Extension"] = part;
    json!({
        "$schema": draft,
        "title": "Pagetide scenario",
        "type": "object",
        "if": { "required": ["base"] },
        "then": { "$ref": "#/$defs/Extension" },
        "else": { "$ref": "#/$defs/Scenario" },
        "$defs": definitions,
    })
}

/// Removes the requirements of a schema, and lets its references start with `definitions`.
fn relax(schema: &mut Value, definitions: &str) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|one| relax(one, definitions)),
        Value::Object(object) => {
            if let Some(Value::Array(_)) = object.get("required") {
                object.remove("required");
            }
            // Without `workload` the keys of a phase can be those of several workloads.
            if let Some(choices) = object.remove("oneOf") {
                object.insert("anyOf".into(), choices);
            }
            if let Some(Value::String(reference)) = object.get_mut("$ref") {
                *reference = reference.replacen("#/$defs/", definitions, 1);
            }
            object.values_mut().for_each(|one| relax(one, definitions));
        }
        _ => {}
    }
}

/// Removes nulls: TOML has none, an unset key is absent.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NameSet;
    use crate::workload::WorkloadKind;
    use pagetide_core::config::{Policy, Sysctl};

    fn names(schema: &Value) -> Vec<&str> {
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// The schema of files without a base, with the definitions.
    fn whole(plugins: &PluginNames) -> Value {
        let schema = schema(plugins);
        let mut whole = schema["$defs"]["Scenario"].clone();
        whole["$defs"] = schema["$defs"].clone();
        whole
    }

    #[test]
    fn a_file_with_a_base_needs_no_other_key() {
        let schema = schema(&PluginNames::default());
        assert!(schema["$schema"].as_str().unwrap().contains("2020-12"));
        assert_eq!(schema["if"], json!({ "required": ["base"] }));
        assert_eq!(schema["then"]["$ref"], json!("#/$defs/Extension"));
        assert_eq!(schema["else"]["$ref"], json!("#/$defs/Scenario"));
        let (whole, part) = (&schema["$defs"]["Scenario"], &schema["$defs"]["Extension"]);
        for key in BASE_KEYS {
            assert!(part["properties"][key].is_object() && whole["properties"][key].is_null());
        }
        assert!(part["properties"]["machine"]["properties"]["cpus"].is_object());
        let text = part.to_string();
        assert!(!text.contains("\"required\":") && !text.contains("\"oneOf\":"));
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let path = reference.split('"').next().unwrap();
            assert!(path.starts_with("/$defs/Extension/$defs/"), "{path}");
            assert!(schema.pointer(path).is_some(), "{path}");
        }
    }

    #[test]
    fn it_describes_every_table() {
        let schema = whole(&PluginNames::default());
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
        let schema = whole(&PluginNames::default());
        let sysctls = &schema["$defs"]["Sysctls"]["properties"];
        for sysctl in Sysctl::ALL {
            let (name, is_key) = (sysctl.name(), !sysctl.file().form.is_action());
            assert_eq!(sysctls[name]["description"].is_string(), is_key, "{name}");
            let mut nested = &schema["$defs"]["Sysctls"];
            for part in name.split('.') {
                nested = &nested["properties"][part];
            }
            assert_eq!(nested["description"].is_string(), is_key, "{name}");
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
        // A file that triggers an action is not a key of a group, but a task may write it.
        assert!(group["memory.reclaim"].is_null());
        assert!(group["memory"]["properties"]["reclaim"].is_null());
        let controls = schema["$defs"]["Task"].to_string();
        for name in ["memory.reclaim", "vm.swappiness", "vm.compact_memory"] {
            assert!(controls.contains(&format!("\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn it_has_every_policy() {
        let schema = whole(&PluginNames::default());
        let policy = &schema["$defs"]["Policy"]["properties"];
        let policy =
            if policy.is_null() { &schema["properties"]["policy"]["properties"] } else { policy };
        let keys = Policy::ALL.iter().filter(|policy| !policy.is_implied());
        let keys: Vec<&str> = keys.map(|policy| policy.name()).collect();
        assert!(keys.contains(&"watermarks") && !keys.contains(&"cgroup"));
        for key in keys {
            assert!(policy[key]["oneOf"].is_array(), "{key}");
        }
    }

    #[test]
    fn it_has_the_policies_that_are_registered() {
        let of = |plugins: &PluginNames| {
            let schema = whole(plugins);
            let policy = &schema["$defs"]["Policy"]["properties"];
            let whole = &schema["properties"]["policy"]["properties"];
            let policy = if policy.is_null() { whole } else { policy };
            policy["groups"]["enum"].clone()
        };
        assert_eq!(of(&PluginNames::default()), json!(["linux"]));
        let plugins = PluginNames { groups: vec!["mine".into()], ..PluginNames::default() };
        assert_eq!(of(&plugins), json!(["linux", "mine"]));
    }

    #[test]
    fn every_workload_has_its_keys() {
        let schema = whole(&PluginNames::default());
        for holder in ["Task", "Phase"] {
            let holder = &schema["$defs"][holder];
            assert_eq!(holder["unevaluatedProperties"], json!(false));
            let text = holder.to_string();
            for kind in WorkloadKind::ALL {
                assert!(text.contains(&format!("\"const\":\"{}\"", kind.name())), "{text}");
                for key in kind.keys() {
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
