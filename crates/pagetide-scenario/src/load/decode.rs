//! Decodes tree values into typed values, and collects every mistake. For tables see `table`.

use super::span::{clip, list_all, ProblemSink, SourceSpan, Spanned};
pub(crate) use super::table::{decode_table, fill, require_key, table, unknown_key, KeyTable};
use super::tree::{TomlNode, TomlValue};
use super::units::{self, UnitError};
use crate::names::{AdviceKind, DiskModel, NameSet, OrderKind, PickKind, ZoneName};
use crate::names::{ArrivalKind, CpuDistribution};
use crate::names::{
    HighOrderRequest, HugeAdviceKind, KernelRequest, LockKind, MadviseKind, NameKind,
    SigtermEffect, SubtreeControl,
};
use pagetide_core::units::page_size::PageSize;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

pub(crate) trait Decode: Sized {
    /// Returns `None` after it has reported a mistake.
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self>;
}

/// Reports a value of the wrong type.
pub(crate) fn expected(node: &TomlNode, what: &str, hint: &str, sink: &mut ProblemSink) {
    let message = format!("expected {what}, found {}", node.value.kind());
    if hint.is_empty() {
        sink.error(node.span, message);
    } else {
        sink.hinted(node.span, message, hint);
    }
}

impl<T: Decode> Decode for Spanned<T> {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        Some(Spanned { value: T::decode(node, sink)?, span: node.span })
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// An array of tables or of values. One bad element makes the whole array `None`.
impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Array(nodes) = &node.value else {
            let hint = match node.value {
                TomlValue::Table(_) => {
                    "write it as an array of tables, with double brackets: [[...]]"
                }
                _ => "",
            };
            expected(node, "an array", hint, sink);
            return None;
        };
        let decoded: Vec<Option<T>> = nodes.iter().map(|node| T::decode(node, sink)).collect();
        decoded.into_iter().collect()
    }
}

impl Decode for String {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        match &node.value {
            TomlValue::Text(text) => Some(text.clone()),
            _ => {
                expected(node, "a string", "", sink);
                None
            }
        }
    }
}

impl Decode for bool {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        match &node.value {
            TomlValue::Boolean(value) => Some(*value),
            _ => {
                expected(node, "true or false", "", sink);
                None
            }
        }
    }
}

/// A name that can be part of a metric key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameKey(pub(crate) String);

const NAME_MAX: usize = 64;

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= NAME_MAX && text.chars().all(is_plain)
}

impl Decode for NameKey {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let name = String::decode(node, sink)?;
        if !is_name(&name) {
            let hint = format!("use 1 to {NAME_MAX} letters, digits, `-` and `_`");
            sink.hinted(node.span, format!("`{}` is not a valid name", clip(&name)), hint);
            return None;
        }
        Some(NameKey(name))
    }
}

/// The name of a group, or of one copy of a group: `NAME.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupTarget(pub(crate) String);

impl GroupTarget {
    /// The name of the group, and the number of the copy if there is one.
    pub(crate) fn parts(&self) -> (&str, Option<&str>) {
        match self.0.split_once('.') {
            Some((name, copy)) => (name, Some(copy)),
            None => (&self.0, None),
        }
    }
}

impl Decode for GroupTarget {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let text = String::decode(node, sink)?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let target = GroupTarget(text);
        let (name, copy) = target.parts();
        if !is_name(name) || copy.is_some_and(|copy| copy.is_empty() || !is_number(copy)) {
            let hint = "write the name of a group, or of one of its copies: \"batch.0\"";
            let message = format!("`{}` is not a valid group name", clip(&target.0));
            sink.hinted(node.span, message, hint);
            return None;
        }
        Some(target)
    }
}

impl JsonSchema for GroupTarget {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Target".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}(\\.[0-9]+)?$" })
    }
}

impl JsonSchema for NameKey {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" })
    }
}

/// The name of a scenario or of a variant. It may contain dots and other signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub(crate) String);

impl Decode for Label {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let label = String::decode(node, sink)?;
        if !is_label(&label) {
            let hint = format!("use 1 to {NAME_MAX} letters, digits or any of - _ . + = : / %");
            sink.hinted(node.span, format!("`{}` is not a valid name", clip(&label)), hint);
            return None;
        }
        Some(Label(label))
    }
}

pub(crate) fn is_label(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+=:/%".contains(c);
    !text.is_empty() && text.len() <= NAME_MAX && text.chars().all(is_plain)
}

impl JsonSchema for Label {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Label".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[-A-Za-z0-9_.+=:/%]{1,64}$" })
    }
}

/// An integer within bounds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int<const MIN: i64, const MAX: i64>(pub(crate) i64);

macro_rules! int_is {
    ($($number:ty),+) => {$(
        impl<const MIN: i64, const MAX: i64> From<Int<MIN, MAX>> for $number {
            fn from(int: Int<MIN, MAX>) -> $number {
                int.0.try_into().expect("the bounds of a key fit the target type")
            }
        }
    )+};
}
int_is!(i8, i16, u8, u32, u64);

impl<const MIN: i64, const MAX: i64> Decode for Int<MIN, MAX> {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Integer(value) = node.value else {
            let hint = match &node.value {
                TomlValue::Text(text) if text.trim().parse::<i64>().is_ok() => "remove the quotes",
                _ => "",
            };
            expected(node, "an integer", hint, sink);
            return None;
        };
        match i64::try_from(value) {
            Ok(value) if (MIN..=MAX).contains(&value) => Some(Int(value)),
            _ => {
                let bounds = match MAX {
                    i64::MAX if value < MIN.into() => format!("{MIN} or more"),
                    _ => format!("from {MIN} to {MAX}"),
                };
                let message = format!("{value} is out of range");
                sink.hinted(node.span, message, format!("write an integer, {bounds}"));
                None
            }
        }
    }
}

impl<const MIN: i64, const MAX: i64> JsonSchema for Int<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Int".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        match MAX {
            i64::MAX => json_schema!({ "type": "integer", "minimum": MIN }),
            _ => json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX }),
        }
    }
}

/// Declares a quantity that is written with a unit.
macro_rules! quantity {
    (
        $(#[doc = $doc:literal])+ $name:ident, $what:literal, $parse:path, $forms:path,
        $pattern:literal, $plain:expr
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) u64);

        impl Decode for $name {
            fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
                let plain: Option<u64> = $plain;
                quantity(node, $what, $parse, $forms, plain, sink).map($name)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let plain: Option<u64> = $plain;
                let text = json_schema!({ "type": "string", "pattern": $pattern });
                let integer = match plain {
                    None => json_schema!({ "type": "integer", "minimum": 0 }),
                    Some(max) => json_schema!({ "type": "integer", "minimum": 0, "maximum": max }),
                };
                json_schema!({ "description": $forms, "anyOf": [text, integer] })
            }
        }
    };
}

quantity! {
    /// Bytes.
    Size, "a size", units::parse_size, units::SIZE_FORMS,
    "^[0-9]+(\\.[0-9]+)? *(B|[KkMmGgTt]|[KMGT]iB|p|pages?)?$", None
}
quantity! {
    /// Nanoseconds. A plain 0 is accepted; any other plain integer is reported as lacking a unit.
    Time, "a time", units::parse_time, units::TIME_FORMS,
    "^[0-9]+(\\.[0-9]+)? *(ns|us|ms|s|min|h)$", Some(0)
}
quantity! {
    /// Bytes per second.
    Rate, "a rate", units::parse_rate, units::RATE_FORMS,
    "^[0-9]+(\\.[0-9]+)? *(B|[KkMmGgTt]|[KMGT]iB|p|pages?)?/s$", Some(0)
}
quantity! {
    /// Per cent, from 0 to 100. A plain 0 is accepted; other plain integers lack a unit.
    Percent, "a share", units::parse_percent, units::PERCENT_FORMS, "^[0-9]{1,3} *%$", Some(0)
}

/// A share: per cent, or `N in M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) part: u32,
    pub(crate) of: u32,
}

impl Share {
    pub(crate) const NONE: Share = Share { part: 0, of: 100 };
}

impl Decode for Share {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Text(text) = &node.value else {
            return Percent::decode(node, sink).map(|_| Share::NONE);
        };
        match units::parse_share(text) {
            Ok((part, of)) => Some(Share { part, of }),
            Err(UnitError { message, hint }) => {
                sink.hinted(node.span, format!("`{}`: {message}", clip(text)), hint);
                None
            }
        }
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({
            "type": "string", "pattern": "^([0-9]{1,3} *%|[0-9]+ in [0-9]+)$"
        });
        let none = json_schema!({ "type": "integer", "minimum": 0, "maximum": 0 });
        json_schema!({ "description": units::SHARE_FORMS, "anyOf": [text, none] })
    }
}

/// Reads a quantity: a text with a unit, or a plain integer up to `plain_max`.
fn quantity(
    node: &TomlNode,
    what: &str,
    parse: fn(&str, PageSize) -> Result<u64, UnitError>,
    forms: &str,
    plain_max: Option<u64>,
    sink: &mut ProblemSink,
) -> Option<u64> {
    let plain_max = plain_max.unwrap_or(u64::MAX);
    match &node.value {
        TomlValue::Text(text) => match parse(text, sink.page_size) {
            Ok(value) => Some(value),
            Err(UnitError { message, hint }) => {
                sink.unknown(node.span, format!("`{}`: {message}", clip(text)), text, hint);
                None
            }
        },
        TomlValue::Integer(value) => {
            let message = match u64::try_from(*value) {
                Ok(value) if value <= plain_max => return Some(value),
                Ok(_) => format!("{what} needs a unit"),
                Err(_) if *value < 0 => format!("{what} cannot be negative"),
                Err(_) => format!("{what} cannot be that large"),
            };
            sink.hinted(node.span, message, forms);
            None
        }
        _ => {
            expected(node, what, forms, sink);
            None
        }
    }
}

/// A positive decimal number in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hundredths(pub(crate) u32);

impl Decode for Hundredths {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let parsed = match &node.value {
            TomlValue::Float(text) => units::parse_hundredths(text),
            TomlValue::Integer(value) => units::parse_hundredths(&value.to_string()),
            _ => None,
        };
        let limit = crate::draws::zipf::ZIPF_EXPONENT_HUNDREDTHS_MAX;
        match parsed {
            Some(value) if (1..=limit).contains(&value) => Some(Hundredths(value)),
            _ => {
                let hint =
                    "write a number from 0.01 to 10 with at most two decimals, for example 1.0";
                sink.hinted(node.span, "not a valid exponent", hint);
                None
            }
        }
    }
}

impl JsonSchema for Hundredths {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Hundredths".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0.01, "maximum": 10 })
    }
}

/// A rate per second, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerSecond(pub(crate) u64);

/// Highest rate.
const PER_SECOND_MAX: u64 = 10_000_000;

impl Decode for PerSecond {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let parsed = match &node.value {
            TomlValue::Float(text) => units::parse_parts(text, 1000),
            TomlValue::Integer(value) => units::parse_parts(&value.to_string(), 1000),
            _ => None,
        };
        match parsed {
            Some(value) if (1..=PER_SECOND_MAX * 1000).contains(&value) => Some(PerSecond(value)),
            _ => {
                let hint = format!(
                    "write requests per second: a number from 0.001 to {PER_SECOND_MAX} with at most three \
                     decimals, for example 500"
                );
                sink.hinted(node.span, "not a valid rate of requests", hint);
                None
            }
        }
    }
}

impl JsonSchema for PerSecond {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "PerSecond".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0.001, "maximum": PER_SECOND_MAX })
    }
}

/// Reads one name of a closed set.
pub(crate) fn decode_named<T: NameSet>(node: &TomlNode, sink: &mut ProblemSink) -> Option<T> {
    let text = String::decode(node, sink)?;
    let found = T::from_name(&text);
    if found.is_none() {
        unknown_name(T::WHAT, &text, node.span, T::ALL.iter().map(|one| one.name()), sink);
    }
    found
}

/// Reports a name that is not in a closed set.
pub(crate) fn unknown_name<'a>(
    what: &str,
    text: &str,
    span: SourceSpan,
    names: impl Iterator<Item = &'a str> + Clone,
    sink: &mut ProblemSink,
) {
    // A name that differs only in its version number is another version, not a typing mistake.
    let stem =
        |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
    let near = sink.suggest(text, names.clone()).filter(|near| stem(near) != stem(text));
    let hint = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("it is one of {}", list_all(names)),
    };
    sink.unknown(span, format!("unknown {what} `{}`", clip(text)), text, hint);
}

macro_rules! named {
    ($($name:ident),+ $(,)?) => {$(
        impl $crate::load::decode::Decode for $name {
            fn decode(
                node: &$crate::load::tree::TomlNode,
                sink: &mut $crate::load::span::ProblemSink,
            ) -> Option<Self> {
                $crate::load::decode::decode_named(node, sink)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                use $crate::names::NameSet;
                let one = |one: &$name| {
                    serde_json::json!({ "const": one.name(), "description": one.doc().trim() })
                };
                let all: Vec<serde_json::Value> = $name::ALL.iter().map(one).collect();
                schemars::json_schema!({ "type": "string", "oneOf": all })
            }
        }
    )+};
}
pub(crate) use named;

named!(
    AdviceKind,
    ArrivalKind,
    CpuDistribution,
    DiskModel,
    HighOrderRequest,
    HugeAdviceKind,
    KernelRequest,
    LockKind,
    MadviseKind,
    SubtreeControl,
    NameKind,
    OrderKind,
    PickKind,
    SigtermEffect,
    ZoneName,
);
