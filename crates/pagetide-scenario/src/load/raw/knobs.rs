//! `[sysctl]`, `[policy]` and `[[group]]`: the texts that a user would echo into control files. A
//! text is kept as written; a later step checks whether the kernel accepts it.

use super::control_schema;
use crate::load::decode::{
    expected, table, unknown_key, unknown_name, Decode, Int, KeyTable, NameKey,
};
use crate::load::removed::report_removed;
use crate::load::span::{ProblemSink, Spanned};
use crate::load::tree::{TomlEntry, TomlNode, TomlValue};
use crate::names::SubtreeControl;
use pagetide_core::ageing::generations::command::LruGenWrite;
use pagetide_core::config::{Policy, PolicyChoice, PolicySet, Sysctl};
use pagetide_core::control::{CacheControl, GroupControl};
use pagetide_core::swap::zram::ZramWrite;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// Which built-in behaviours to use. docs/scenario.md says what each one stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyTable {
    pub(crate) choices: Vec<Spanned<PolicyChoice>>,
    /// The kernel that sets the defaults of the other policies.
    pub(crate) kernel: Option<Spanned<PolicySet>>,
    /// A registered policy that chooses the groups to reclaim from.
    pub(crate) groups: Option<Spanned<NameKey>>,
    /// A registered policy that chooses the pages to evict.
    pub(crate) pages: Option<Spanned<NameKey>>,
    /// Some choice could not be read.
    pub(crate) is_incomplete: bool,
}

/// The key that selects a kernel, and its description.
pub(crate) const KERNEL_KEY: (&str, &str) =
    ("kernel", "The kernel whose behaviour is the default of the other keys.");

/// The keys of registered policies, and their descriptions.
pub(crate) const PLUGIN_KEYS: [(&str, &str); 2] = [
    ("groups", "A policy registered by the program: it chooses the groups to reclaim from."),
    ("pages", "A policy registered by the program: it chooses the pages to evict."),
];

/// The policies that are keys of `[policy]`.
pub(crate) fn policy_keys() -> impl Iterator<Item = Policy> + Clone {
    Policy::ALL.iter().copied().filter(|policy| !policy.is_implied())
}

impl Decode for PolicyTable {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            expected(node, "a table", "", sink);
            return None;
        };
        let mut policies = PolicyTable::default();
        for entry in &table.entries {
            let is_read = match entry.key.as_str() {
                "kernel" => {
                    policies.kernel = decode_kernel(entry, sink);
                    policies.kernel.is_some()
                }
                "groups" => {
                    policies.groups = Decode::decode(&entry.node, sink);
                    policies.groups.is_some()
                }
                "pages" => {
                    policies.pages = Decode::decode(&entry.node, sink);
                    policies.pages.is_some()
                }
                _ => {
                    let choice = decode_choice(entry, sink);
                    let is_read = choice.is_some();
                    policies.choices.extend(choice);
                    is_read
                }
            };
            policies.is_incomplete |= !is_read;
        }
        Some(policies)
    }
}

fn decode_kernel(entry: &TomlEntry, sink: &mut ProblemSink) -> Option<Spanned<PolicySet>> {
    let text = String::decode(&entry.node, sink)?;
    let kernel = PolicySet::find(&text);
    if kernel.is_none() {
        let names = PolicySet::ALL.iter().map(|set| set.name());
        unknown_name("kernel", &text, entry.node.span, names, sink);
    }
    Some(Spanned { value: kernel?, span: entry.node.span })
}

fn decode_choice(entry: &TomlEntry, sink: &mut ProblemSink) -> Option<Spanned<PolicyChoice>> {
    let Some(policy) = policy_keys().find(|policy| policy.name() == entry.key) else {
        if report_removed(&entry.key, None, entry.key_span, sink) {
            return None;
        }
        let others = [KERNEL_KEY, PLUGIN_KEYS[0], PLUGIN_KEYS[1]].map(|(key, _)| key);
        unknown_key(entry, policy_keys().map(Policy::name).chain(others), sink);
        return None;
    };
    let text = String::decode(&entry.node, sink)?;
    let choice = policy.choice(&text);
    if choice.is_none() && !report_removed(&entry.key, Some(&text), entry.node.span, sink) {
        let names = policy.variants().iter().map(|choice| choice.name());
        unknown_name("policy", &text, entry.node.span, names, sink);
    }
    Some(Spanned { value: choice?, span: entry.node.span })
}

impl JsonSchema for PolicyTable {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        control_schema::policies()
    }
}

/// Writes to control files: the kernel's file name, and the text to write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knobs {
    pub(crate) writes: Vec<RawWrite>,
}

#[derive(Clone, Debug)]
pub(crate) struct RawWrite {
    pub(crate) name: Spanned<String>,
    pub(crate) text: Spanned<String>,
}

impl Decode for Knobs {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            expected(node, "a table", "write [sysctl] and then \"vm.swappiness\" = 60", sink);
            return None;
        };
        let writes = table.entries.iter().filter_map(|entry| decode_write(entry, sink)).collect();
        Some(Knobs { writes })
    }
}

fn decode_write(entry: &TomlEntry, sink: &mut ProblemSink) -> Option<RawWrite> {
    let text = ControlText::decode(&entry.node, sink)?;
    let name = Spanned { value: entry.key.clone(), span: entry.key_span };
    Some(RawWrite { name, text: Spanned { value: text.0, span: entry.node.span } })
}

/// The text to write into a control file: a string as it is, an integer in decimal, an array of
/// integers with blanks between them, an array of strings as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlText(pub(crate) String);

impl Decode for ControlText {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let integer = |node: &TomlNode| match node.value {
            TomlValue::Integer(value) => Some(value.to_string()),
            _ => None,
        };
        let line = |node: &TomlNode| match &node.value {
            TomlValue::Text(text) => Some(text.clone()),
            _ => None,
        };
        match &node.value {
            TomlValue::Text(text) => Some(ControlText(text.clone())),
            TomlValue::Integer(value) => Some(ControlText(value.to_string())),
            TomlValue::Array(nodes) => {
                let all = |of: &dyn Fn(&TomlNode) -> Option<String>, between| {
                    let texts: Option<Vec<String>> = nodes.iter().map(of).collect();
                    texts.map(|texts| ControlText(texts.join(between)))
                };
                let joined = all(&integer, " ").or_else(|| all(&line, "\n"));
                if joined.is_none() {
                    expected(node, "integers, or strings", "", sink);
                }
                joined
            }
            _ => {
                let hint = "write what you would echo into the file";
                expected(node, "an integer or a string", hint, sink);
                None
            }
        }
    }
}

impl JsonSchema for ControlText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ControlText".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let items = json_schema!({ "type": ["integer", "string"] });
        json_schema!({ "type": ["string", "integer", "array"], "items": items })
    }
}

/// Name of a control file of the machine, of a cache or of a group; a later check decides which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlName(pub(crate) String);

impl Decode for ControlName {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        String::decode(node, sink).map(ControlName)
    }
}

impl JsonSchema for ControlName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ControlName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let of_groups = GroupControl::ALL.iter().map(|control| control.name());
        let names: Vec<&str> = Sysctl::ALL
            .iter()
            .map(|sysctl| sysctl.name())
            .chain(of_groups)
            .chain(ZramWrite::NAMES)
            .chain([LruGenWrite::NAME])
            .collect();
        let files: Vec<&str> = CacheControl::written().map(|control| control.file().name).collect();
        let of_caches = format!("^slab\\..+\\.({})$", files.join("|"));
        json_schema!({ "type": "string", "anyOf": [{ "enum": names }, { "pattern": of_caches }] })
    }
}

impl JsonSchema for Knobs {
    fn schema_name() -> Cow<'static, str> {
        "Sysctls".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        control_schema::sysctls()
    }
}

/// A memory group.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawGroup {
    pub(crate) table: GroupTable,
    pub(crate) controls: Knobs,
}

/// Largest number of copies of one `[[group]]`.
const GROUP_COPIES_MAX: i64 = 4096;

table! {
    /// A memory group.
    GroupTable {
        /// Name of the group.
        #[schemars(required)]
        name: Spanned<NameKey>,
        /// Parent group (default: the root).
        parent: Spanned<NameKey>,
        /// The group exists when the run begins; if false, a task makes it with workload
        /// create-group (default true).
        at_start: Spanned<bool>,
        /// Number of groups, called NAME.0, NAME.1 ...; copies of a task use them in turn (default
        /// 1).
        copies: Spanned<Int<1, GROUP_COPIES_MAX>>,
        /// Whether child groups get a memory controller; if not, this group is charged for them.
        subtree_control: Spanned<SubtreeControl> = SubtreeControl::Memory,
    }
}

impl Decode for RawGroup {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            expected(node, "a table", "", sink);
            return None;
        };
        let mut group = RawGroup::default();
        group.table.set_span(node.span);
        for entry in &table.entries {
            if group.table.take(entry, sink) {
                continue;
            }
            // Names of control files contain a dot, so this is a misspelled key.
            if !entry.key.contains('.') {
                let keys = GroupTable::KEYS.iter().copied();
                let controls = GroupControl::ALL.iter().map(|control| control.name());
                let near = unknown_key(entry, keys.chain(controls), sink);
                group.table.mark_bad(near);
            } else {
                group.controls.writes.extend(decode_write(entry, sink));
            }
        }
        Some(group)
    }
}

impl JsonSchema for RawGroup {
    fn schema_name() -> Cow<'static, str> {
        "Group".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = GroupTable::json_schema(generator);
        control_schema::with_group_controls(table)
    }
}
