//! Loads an object mix: TOML text becomes a checked [`ObjectMix`], or a list of all mistakes.

use crate::diagnostic::Diagnostics;
use crate::load::decode::{decode_table, expected, table, unknown_key, Decode, Int};
use crate::load::loader::{Loader, SCENARIO_BYTES_MAX};
use crate::load::span::{clip, ProblemSink, SourceSpan, Spanned, SpannedProblem};
use crate::load::tree::{self, TomlNode, TomlValue};
use crate::load::units::{parse_parts, show_parts};
use crate::model::object_mix::{
    KernelCache, Lifetimes, ObjectMix, ObjectRow, SHARES, UNIT_ALLOCS_MAX,
};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest length of the name of a cache.
const NAME_MAX: usize = 64;
/// Largest object that kmalloc() takes from a cache, in bytes.
const OBJECT_SIZE_MAX: i64 = 1 << 16;
const ROWS_MAX: usize = 1000;
/// Keys of the lifetime classes, from short to long.
const CLASSES: [&str; 6] = ["16", "256", "4096", "unit", "cached", "kept"];

table! {
    /// A recorded mix.
    Mix of "the mix" {
        /// Source of the recording: program, kernel, method and date.
        recorded: Spanned<String> => required "\"gcc -c; Linux 6.1; 2026-01-31\"",
        /// Definition of one unit.
        unit: Spanned<String> => required "\"one compiler process\"",
        /// Definition of the start-up part.
        start: Spanned<String>,
        /// Objects of a unit.
        #[schemars(required)]
        cache: Vec<MixRowTable>,
        /// Objects of the start-up part.
        start_cache: Vec<MixRowTable>,
    }
}

table! {
    /// Objects of one cache with the same accounting.
    MixRowTable of "the cache" {
        /// Name of the cache, as in /proc/slabinfo.
        name: Spanned<CacheName> => required "\"filp\"",
        /// Size of an object in bytes.
        object_size: Spanned<Int<1, OBJECT_SIZE_MAX>> => required "256",
        /// Whether the objects are charged to a group.
        account: Spanned<bool> => required "true",
        /// Whether the cache counts as reclaimable.
        reclaimable: Spanned<bool> => required "false",
        /// Mean number of allocations per unit.
        allocs: Spanned<Thousandths> => required "1.5",
        /// Shares of the allocations by lifetime.
        lifetimes: Spanned<Lifetimes> => required "{ unit = 1 }",
    }
}

#[derive(Clone, Debug)]
pub(super) struct CacheName(String);

impl Decode for CacheName {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let name = String::decode(node, sink)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:()".contains(c);
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) {
            let hint = "write it as /proc/slabinfo does, for example \"kmalloc-cg-64\"";
            sink.hinted(node.span, format!("`{}` is not a valid cache name", clip(&name)), hint);
            return None;
        }
        Some(CacheName(name))
    }
}

/// A number of allocations, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thousandths(u64);

impl Decode for Thousandths {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        match number(node, 1000) {
            Some(parts) if (1..=UNIT_ALLOCS_MAX * 1000).contains(&parts) => Some(Self(parts)),
            _ => {
                let hint = format!(
                    "write a number from 0.001 to {UNIT_ALLOCS_MAX} with at most three decimals"
                );
                sink.hinted(node.span, "not a valid number of allocations", hint);
                None
            }
        }
    }
}

/// A decimal number; returns multiples of `1 / factor`.
fn number(node: &TomlNode, factor: u64) -> Option<u64> {
    match &node.value {
        TomlValue::Float(text) => parse_parts(text, factor),
        TomlValue::Integer(value) => parse_parts(&value.to_string(), factor),
        _ => None,
    }
}

impl Decode for Lifetimes {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            let hint = "write lifetimes = { \"16\" = 0.9, unit = 0.1 }, for example";
            expected(node, "a table", hint, sink);
            return None;
        };
        let mut shares = [0; CLASSES.len()];
        let mut is_sound = true;
        for entry in &table.entries {
            let Some(class) = CLASSES.iter().position(|class| *class == entry.key) else {
                unknown_key(entry, CLASSES.into_iter(), sink);
                is_sound = false;
                continue;
            };
            match number(&entry.node, u64::from(SHARES)) {
                Some(share) if share <= u64::from(SHARES) => shares[class] = share,
                _ => {
                    let hint = "write a number from 0 to 1 with at most four decimals";
                    sink.hinted(entry.node.span, "not a valid share", hint);
                    is_sound = false;
                }
            }
        }
        if !is_sound {
            return None;
        }
        let sum: u64 = shares.iter().sum();
        if sum != u64::from(SHARES) {
            let message = format!("the shares add up to {}", show_parts(sum, u64::from(SHARES)));
            sink.hinted(node.span, message, "they must add up to 1");
            return None;
        }
        let [a, b, c, unit, cached, kept] = shares.map(|share| share as u16);
        Some(Lifetimes { within: [a, b, c], unit, cached, kept })
    }
}

macro_rules! described {
    ($($name:ident: $schema:tt),+ $(,)?) => {$(
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

described!(
    CacheName: { "type": "string" },
    Thousandths: { "type": "number" },
    Lifetimes: { "type": "object" },
);

/// Parses an object mix. Messages call it `name`.
///
/// # Errors
/// All mistakes in the text.
pub fn parse(name: &str, text: &str) -> Result<ObjectMix, Diagnostics> {
    let mut loader = Loader::new(name, text, Path::new(""));
    let mut sink = ProblemSink::default();
    let mix = if text.len() as u64 > SCENARIO_BYTES_MAX {
        let message =
            format!("the text is larger than {SCENARIO_BYTES_MAX} bytes: not an object mix");
        sink.error(SourceSpan::default(), message);
        None
    } else {
        read(text, &mut sink)
    };
    loader.absorb(sink);
    match mix {
        Some(mix) if loader.problems.is_empty() => Ok(mix),
        _ => Err(loader.diagnostics()),
    }
}

fn read(text: &str, sink: &mut ProblemSink) -> Option<ObjectMix> {
    let root = tree::parse(text, 0, sink)?;
    let raw: Mix = decode_table(&root, sink)?;
    let (recorded, unit) = (raw.recorded(sink), raw.unit(sink));
    let cache = raw.cache.as_deref().unwrap_or_default();
    if cache.is_empty() && raw.bad.is_empty() {
        sink.hinted(root.span, "the mix has no objects", "add a [[cache]]");
    }
    let mut known = BTreeMap::new();
    let rows = rows(cache, &mut known, sink);
    let start_rows = self::rows(raw.start_cache.as_deref().unwrap_or_default(), &mut known, sink);
    Some(ObjectMix {
        recorded: recorded?.value.clone(),
        unit: unit?.value.clone(),
        start: raw.start.as_ref().map(|start| start.value.clone()),
        rows: rows?,
        start_rows: start_rows?,
    })
}

/// The rows of one array. `known`: the caches of earlier rows, and their positions.
fn rows(
    list: &[MixRowTable],
    known: &mut BTreeMap<String, (KernelCache, SourceSpan)>,
    sink: &mut ProblemSink,
) -> Option<Vec<ObjectRow>> {
    if let Some(row) = list.get(ROWS_MAX) {
        sink.hinted(row.at, "too many rows", format!("an object mix has at most {ROWS_MAX}"));
        return None;
    }
    let rows: Vec<Option<ObjectRow>> = list.iter().map(|raw| row(raw, known, sink)).collect();
    let rows: Vec<ObjectRow> = rows.into_iter().collect::<Option<_>>()?;
    let sum: u64 = rows.iter().map(|row| row.allocs_thousandths).sum();
    if sum > UNIT_ALLOCS_MAX * 1000 {
        let message = format!("a unit makes {} allocations", sum / 1000);
        sink.hinted(
            list[0].at,
            message,
            format!("a unit makes at most {UNIT_ALLOCS_MAX}: use smaller units"),
        );
        return None;
    }
    Some(rows)
}

fn row(
    raw: &MixRowTable,
    known: &mut BTreeMap<String, (KernelCache, SourceSpan)>,
    sink: &mut ProblemSink,
) -> Option<ObjectRow> {
    let (name, size, account) = (raw.name(sink), raw.object_size(sink), raw.account(sink));
    let (reclaimable, allocs) = (raw.reclaimable(sink), raw.allocs(sink));
    let lifetimes = raw.lifetimes(sink);
    let name = name?;
    let cache = KernelCache {
        name: name.value.0.clone(),
        object_size: size?.value.0 as u32,
        reclaimable: reclaimable?.value,
    };
    let row = ObjectRow {
        cache: cache.clone(),
        account: account?.value,
        allocs_thousandths: allocs?.value.0,
        lifetimes: lifetimes?.value,
    };
    let (first, span) = known.entry(cache.name.clone()).or_insert((cache.clone(), name.span));
    if *first != cache {
        sink.push(SpannedProblem {
            span: name.span,
            message: format!("the cache `{}` differs from an earlier row", clip(&cache.name)),
            hint: Some("write the same object_size and reclaimable in all rows of a cache".into()),
            also: Some((*span, "first described here".into())),
        });
        return None;
    }
    Some(row)
}
