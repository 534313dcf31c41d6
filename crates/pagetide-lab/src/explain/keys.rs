//! Topics of scenario keys and workloads, from the schema of scenario files.
//!
//! Invariant: each described key of the schema is a topic once per table that has it. Control files
//! and policies are not here: the core declares them.

use super::{Topic, TopicChoice, TopicKind};
use pagetide_core::config::Policy;
use pagetide_core::control::GroupControl;
use pagetide_scenario::load::PluginNames;
use pagetide_scenario::names::NameSet;
use pagetide_scenario::schema::schema;
use pagetide_scenario::workload::WorkloadKind;
use serde_json::{Map, Value};

/// Most nested tables; the schema has at most half of that.
const DEPTH_MAX: usize = 8;

pub(super) fn all(plugins: &PluginNames) -> Vec<Topic> {
    let schema = schema(plugins);
    let mut keys = KeyTopics { schema: &schema, topics: Vec::new() };
    let of = |part: &str| object(&schema["$defs"][part]["properties"]);
    if let (Some(whole), Some(extension)) = (of("Scenario"), of("Extension")) {
        // The other keys of a file with a base are those of a whole scenario.
        let of_bases = extension.iter().filter(|(key, _)| !whole.contains_key(*key));
        for (key, value) in of_bases.chain(whole) {
            keys.key(key, key, value, 0);
        }
    }
    keys.topics
}

fn object(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object()
}

/// Collects topics.
struct KeyTopics<'a> {
    schema: &'a Value,
    topics: Vec<Topic>,
}

impl<'a> KeyTopics<'a> {
    /// Adds the topic of a key, and those of its table, if it is one. `path` is for `--set`.
    fn key(&mut self, name: &str, path: &str, value: &'a Value, depth: usize) {
        let is_elsewhere =
            ["sysctl", "group.memory", "group.cpu", "variant.sysctl", "variant.policy"];
        if depth > DEPTH_MAX || is_elsewhere.contains(&name) {
            return;
        }
        let is_control = name.strip_prefix("group.").and_then(GroupControl::find).is_some();
        let is_policy = name.strip_prefix("policy.").and_then(Policy::find).is_some();
        if is_control || is_policy {
            return;
        }
        let is_key = name.contains('.') || !is_table(self.resolved(value), self);
        if is_key && !description(value).is_empty() {
            self.topics.push(self.topic(name, path, value));
        }
        self.table(name, path, value, depth);
    }

    /// Adds the keys of a table, of each table of a list, or of the one kind of value that is a
    /// table.
    fn table(&mut self, name: &str, path: &str, value: &'a Value, depth: usize) {
        let value = self.resolved(value);
        if let Some(items) = value.get("items") {
            // Phases have the keys of tasks.
            if name == "task.phase" {
                return;
            }
            let items = self.resolved(items);
            let place = if items["properties"].get("name").is_some() { "NAME" } else { "N" };
            return self.table(name, &format!("{path}.{place}"), items, depth);
        }
        for choice in value["anyOf"].as_array().into_iter().flatten() {
            let choice = self.resolved(choice);
            for workload in choice["oneOf"].as_array().into_iter().flatten() {
                self.workload(name, path, workload);
            }
            if choice.get("properties").is_some() {
                self.table(name, path, choice, depth);
            }
        }
        for (key, value) in object(&value["properties"]).into_iter().flatten() {
            self.key(&format!("{name}.{key}"), &format!("{path}.{key}"), value, depth + 1);
        }
    }

    /// Adds a workload and its keys.
    fn workload(&mut self, name: &str, path: &str, workload: &'a Value) {
        let Some(kind) = workload["properties"]["workload"]["const"].as_str() else { return };
        // Watchers have one chapter, workloads one each.
        let is_watcher = WorkloadKind::WATCHERS.iter().any(|watcher| watcher.name() == kind);
        let chapter = if is_watcher { "watcher" } else { kind };
        let of_workload = object(&workload["properties"]).into_iter().flatten();
        let keys: Vec<Topic> = of_workload
            .filter(|(key, _)| *key != "workload")
            .map(|(key, value)| Topic {
                of: vec![kind.to_owned()],
                document: format!("docs/scenario.md#{chapter}"),
                ..self.topic(&format!("{name}.{key}"), &format!("{path}.{key}"), value)
            })
            .collect();
        let choice = |key: &Topic| TopicChoice {
            name: key.name.strip_prefix("task.").unwrap_or(&key.name).to_owned(),
            about: key.about.clone(),
        };
        self.topics.push(Topic {
            choices: keys.iter().map(choice).collect(),
            document: format!("docs/scenario.md#{chapter}"),
            ..Topic::new(TopicKind::Workload, kind, description(workload))
        });
        self.topics.extend(keys);
    }

    fn topic(&self, name: &str, path: &str, value: &'a Value) -> Topic {
        let about = description(value);
        let default = about.rsplit_once("(default ").or_else(|| about.rsplit_once("(default: "));
        let default =
            default.and_then(|(_, rest)| rest.split_once(')')).map_or("", |(text, _)| text);
        let default = default.trim_start_matches(':').trim().to_owned();
        let table = name.split('.').next().unwrap_or(name);
        let can_be_set = name.contains('.') && !["report", "reference", "variant"].contains(&table);
        Topic {
            takes: self.takes(value, 0),
            default,
            choices: self.choices(value),
            set: if can_be_set { format!("--set {path}=VALUE") } else { String::new() },
            document: match name.contains('.') {
                true => format!("docs/scenario.md#{table}"),
                false => "docs/scenario.md#top-level".to_owned(),
            },
            ..Topic::new(TopicKind::Key, name, about)
        }
    }

    /// The definition that a value refers to.
    fn resolved(&self, value: &'a Value) -> &'a Value {
        let name = value["$ref"].as_str().and_then(|place| place.strip_prefix("#/$defs/"));
        name.map_or(value, |name| &self.schema["$defs"][name])
    }

    /// The accepted values, in words.
    fn takes(&self, value: &'a Value, depth: usize) -> String {
        let resolved = self.resolved(value);
        // Definitions of sizes, times and so on describe their syntax.
        let is_like = |defined: &&Value| {
            defined.get("anyOf").is_some() && defined.get("anyOf") == resolved.get("anyOf")
        };
        let mut defined = object(&self.schema["$defs"]).into_iter().flatten().map(|(_, it)| it);
        if let Some(about) = defined.find(is_like).and_then(|it| it["description"].as_str()) {
            return about.to_owned();
        }
        let several = |key: &str| {
            let of_each = |one: &'a Value| match one["const"].as_str() {
                Some(word) => word.to_owned(),
                None => self.takes(one, depth + 1),
            };
            let all = resolved[key].as_array()?.iter().map(of_each).filter(|it| !it.is_empty());
            Some(all.collect::<Vec<String>>().join(" or "))
        };
        if let Some(words) = resolved["enum"].as_array() {
            let words: Vec<String> = words.iter().map(plain).collect();
            return words.join(" or ");
        }
        if depth < 2 {
            if let Some(text) = several("oneOf").or_else(|| several("anyOf")) {
                return text;
            }
        }
        let bounds = (resolved.get("minimum").map(plain), resolved.get("maximum").map(plain));
        match (resolved["type"].as_str().unwrap_or_default(), bounds) {
            ("integer" | "number", (Some(min), Some(max))) if min == max => min,
            ("integer" | "number", (Some(min), Some(max))) => format!("{min} to {max}"),
            ("integer" | "number", (Some(min), None)) => format!("{min} or more"),
            ("integer", _) => "an integer".to_owned(),
            ("number", _) => "a number".to_owned(),
            ("boolean", _) => "true or false".to_owned(),
            ("array", _) => match resolved.get("items") {
                Some(items) if is_table(self.resolved(items), self) => "tables".to_owned(),
                _ => "a list".to_owned(),
            },
            ("object", _) => "a table".to_owned(),
            ("string", _) if resolved["pattern"] == "^[A-Za-z0-9_-]{1,64}$" => {
                "a name: letters, digits, `-`, `_`, at most 64".to_owned()
            }
            ("string", _) => "a text".to_owned(),
            _ => String::new(),
        }
    }

    /// The accepted words with their meanings.
    fn choices(&self, value: &'a Value) -> Vec<TopicChoice> {
        let words = self.resolved(value)["oneOf"].as_array().into_iter().flatten();
        words
            .filter_map(|word| {
                let name = word["const"].as_str()?.to_owned();
                Some(TopicChoice { name, about: description(word) })
            })
            .collect()
    }
}

fn is_table<'a>(value: &'a Value, keys: &KeyTopics<'a>) -> bool {
    let items = value.get("items").map(|items| keys.resolved(items));
    value.get("properties").is_some() || items.is_some_and(|items| is_table(items, keys))
}

/// A description without its line ends.
fn description(value: &Value) -> String {
    let text = value["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// A word without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
