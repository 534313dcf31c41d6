//! The schema of control files and policies, from the core's declarations.

use super::knobs::{policy_keys, KERNEL_KEY, PLUGIN_KEYS};
use pagetide_core::config::{ControlFile, ControlForm, PolicyChoice, PolicySet, Sysctl};
use pagetide_core::control::{CacheControl, GroupControl};
use pagetide_core::units::page_size::PageSize;
use schemars::{json_schema, Schema};
use serde_json::{json, Map, Value};

/// The control files that can be set before anything runs.
fn lasting(files: impl Iterator<Item = &'static ControlFile>) -> Vec<&'static ControlFile> {
    files.filter(|file| !file.form.is_action()).collect()
}

/// A table of the control files of the machine and of caches that can be set before anything runs,
/// flat or nested by the parts of their names.
pub(crate) fn sysctls() -> Schema {
    let of_caches = lasting(CacheControl::written().map(CacheControl::file));
    let flat: Map<String, Value> = of_caches
        .iter()
        .map(|file| (format!("^slab\\..+\\.{}$", file.name), file_schema(file)))
        .collect();
    let mut properties = file_properties(&lasting(Sysctl::ALL.iter().map(|one| one.file())));
    properties.insert(
        "slab".into(),
        json!({
            "type": "object",
            "description": "Caches of kernel objects, by their names.",
            "additionalProperties": {
                "type": "object",
                "properties": file_properties(&of_caches),
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

pub(crate) fn policies() -> Schema {
    let properties: Map<String, Value> = policy_keys()
        .map(|policy| {
            let one = |choice: &PolicyChoice| {
                json!({ "const": choice.name(), "description": choice.doc() })
            };
            let all: Vec<Value> = policy.variants().iter().map(one).collect();
            let default = policy.default_variant().name();
            let description = format!("{} Default: {default}.", policy.doc());
            let schema = json!({ "type": "string", "description": description, "oneOf": all });
            (policy.name().to_owned(), schema)
        })
        .chain([(KERNEL_KEY.0.to_owned(), kernels())])
        .chain(PLUGIN_KEYS.map(|(key, what)| (key.to_owned(), json!({ "description": what }))))
        .collect();
    json_schema!({
        "type": "object",
        "description": "Which built-in behaviours to use. docs/scenario.md says what each one stands for.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Schema of `[policy] kernel`.
fn kernels() -> Value {
    let one = |set: PolicySet| json!({ "const": set.name(), "description": set.doc() });
    let all: Vec<Value> = PolicySet::ALL.iter().copied().map(one).collect();
    let description = format!("{} Default: {}.", KERNEL_KEY.1, PolicySet::default());
    json!({ "type": "string", "description": description, "oneOf": all })
}

/// Adds to `schema` the control files of groups that can be set before anything runs.
pub(crate) fn with_group_controls(mut schema: Schema) -> Schema {
    let object = schema.ensure_object();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        let files = GroupControl::ALL.iter().map(|control| control.file());
        properties.extend(file_properties(&lasting(files)));
    }
    schema
}

/// Properties of control files, by full name and nested by the parts of the name.
fn file_properties(files: &[&ControlFile]) -> Map<String, Value> {
    let mut properties = Map::new();
    for file in files {
        properties.insert(file.name.to_owned(), file_schema(file));
        nest(&mut properties, file.name, file);
    }
    properties
}

fn nest(properties: &mut Map<String, Value>, rest: &str, file: &ControlFile) {
    let Some((head, tail)) = rest.split_once('.') else {
        properties.insert(rest.to_owned(), file_schema(file));
        return;
    };
    let table = properties.entry(head.to_owned()).or_insert_with(
        || json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    );
    if let Some(Value::Object(inner)) = table.get_mut("properties") {
        nest(inner, tail, file);
    }
}

fn file_schema(file: &ControlFile) -> Value {
    let ControlFile { form, unit, since, default, doc, .. } = file;
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let description = format!("{doc} Default: {default}{unit}. Since: {since}.");
    // Two bounds depend on the machine's page size, which a schema does not know: use the widest.
    let bound = |number: i128| match (i64::try_from(number), u64::try_from(number)) {
        (Ok(number), _) => json!(number),
        (_, Ok(number)) => json!(number),
        _ => json!(number as f64),
    };
    let bounds = form.bounds(PageSize::Kib4).zip(form.bounds(PageSize::Kib64));
    match (form, bounds) {
        (ControlForm::Action { max: 1 }, _) => {
            json!({ "description": description, "enum": [1, "1"] })
        }
        (ControlForm::Action { max }, _) => {
            json!({ "description": description, "type": ["integer", "string"], "minimum": 1, "maximum": bound(*max) })
        }
        (_, Some(((min, _), (_, max)))) => json!({
            "description": description,
            "anyOf": [
                { "type": "integer", "minimum": bound(min), "maximum": bound(max) },
                { "type": "string" }
            ]
        }),
        (ControlForm::Zones, _) => json!({
            "description": description,
            "anyOf": [
                { "type": "array", "items": { "type": "integer" }, "maxItems": 4 },
                { "type": "string" }
            ]
        }),
        (ControlForm::Policy(policy), _) => {
            let words: Vec<&str> = policy.variants().iter().map(|one| one.name()).collect();
            json!({ "description": description, "enum": words })
        }
        _ => json!({ "description": description, "type": ["integer", "string"] }),
    }
}
