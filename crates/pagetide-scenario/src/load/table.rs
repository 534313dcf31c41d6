//! Tables of the format: their keys, the defaults of the keys, and the keys that are required.
//!
//! [`table!`] declares a table once: its fields are the accepted keys, and their doc comments are
//! the descriptions in the schema.

use super::decode::expected;
use super::span::{clip, ProblemSink, SourceSpan};
use super::tree::{TomlEntry, TomlNode, TomlValue};
use pagetide_core::config::Sysctl;

/// A table with known keys.
pub(crate) trait KeyTable: Default {
    const KEYS: &'static [&'static str];
    /// Decodes an entry; false if its key is not one of [`Self::KEYS`].
    fn take(&mut self, entry: &TomlEntry, sink: &mut ProblemSink) -> bool;
    /// Sets the position of the table.
    fn set_span(&mut self, span: SourceSpan);
    /// Keys whose values could not be read.
    fn bad(&mut self) -> &mut Vec<&'static str>;

    /// Notes that `key` was probably meant by a misspelt key: it is not missing.
    fn mark_bad(&mut self, key: Option<&str>) {
        let known = Self::KEYS.iter().find(|known| Some(**known) == key);
        self.bad().extend(known);
    }
}

/// Declares a table of the format: a struct of optional fields with their positions.
///
/// A key may have a default (`key: Spanned<T> = value`); the method of the key's name then returns
/// the value without its position. A table with a display name (`TouchKeys of "workload touch"`)
/// may have required keys (`key: Spanned<T> => required "example"`); the method of the key's name
/// then returns the value, or reports that it is missing. The schema has the name of the type, or
/// another (`DiskTable as "Disk"`).
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $name:ident $(as $schema:literal)? $(of $what:literal)? {
            $(
                $(#[$meta:meta])*
                $field:ident : $type:ty
                $(= $default:expr)?
                $(=> $required:ident $example:literal)?
            ,)*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields $(, rename = $schema)?)]
        pub(crate) struct $name {
            /// Position of the table.
            #[schemars(skip)]
            pub(crate) at: $crate::load::span::SourceSpan,
            /// Keys whose values could not be read, or that are misspelt.
            #[schemars(skip)]
            pub(crate) bad: Vec<&'static str>,
            $( $(#[$meta])* $(#[schemars($required)])? pub(crate) $field: Option<$type>, )*
        }

        #[allow(dead_code, reason = "a default may be read with its place")]
        impl $name {
            $(const WHAT: &'static str = $what;)?

            $(
                $crate::load::table::key_method! { $field : $type $(= $default)? $(=> $example)? }
            )*
        }

        impl $crate::load::table::KeyTable for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn take(
                &mut self,
                entry: &$crate::load::tree::TomlEntry,
                sink: &mut $crate::load::span::ProblemSink,
            ) -> bool {
                $(
                    if entry.key == stringify!($field) {
                        self.$field = <$type as $crate::load::decode::Decode>::decode(&entry.node, sink);
                        if self.$field.is_none() {
                            self.bad.push(stringify!($field));
                        }
                        return true;
                    }
                )*
                false
            }

            fn set_span(&mut self, span: $crate::load::span::SourceSpan) {
                self.at = span;
            }

            fn bad(&mut self) -> &mut Vec<&'static str> {
                &mut self.bad
            }
        }

        impl $crate::load::decode::Decode for $name {
            fn decode(
                node: &$crate::load::tree::TomlNode,
                sink: &mut $crate::load::span::ProblemSink,
            ) -> Option<Self> {
                $crate::load::table::decode_table(node, sink)
            }
        }
    };
}

/// The method of a key with a default, or of a required key.
macro_rules! key_method {
    ($field:ident : $type:ty) => {};
    ($field:ident : $type:ty = $default:expr) => {
        pub(crate) fn $field(&self) -> <$type as $crate::load::span::HasSpan>::Value {
            self.$field.as_ref().map_or($default, |at| at.value.clone())
        }
    };
    ($field:ident : $type:ty => $example:literal) => {
        pub(crate) fn $field(&self, sink: &mut $crate::load::span::ProblemSink) -> Option<&$type> {
            let place = (self.at, self.bad.as_slice());
            let key = stringify!($field);
            $crate::load::table::require_key(&self.$field, key, place, Self::WHAT, $example, sink)
        }
    };
}
pub(crate) use key_method;
pub(crate) use table;

/// Reports a key that no table accepts here. Returns the key that was probably meant.
pub(crate) fn unknown_key<'a>(
    entry: &TomlEntry,
    known: impl Iterator<Item = &'a str> + Clone,
    sink: &mut ProblemSink,
) -> Option<&'a str> {
    let message = format!("unknown key `{}`", clip(&entry.key));
    // A sysctl may be named without its directory.
    let sysctls = Sysctl::ALL.iter().map(|sysctl| sysctl.name());
    let near = sink.suggest(&entry.key, known.clone().chain(sysctls));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys here are {}", known.collect::<Vec<_>>().join(", ")),
    };
    sink.unknown(entry.key_span, message, &entry.key, hint);
    near
}

/// Decodes a table that has no other keys than `T`'s.
pub(crate) fn decode_table<T: KeyTable>(node: &TomlNode, sink: &mut ProblemSink) -> Option<T> {
    let TomlValue::Table(table) = &node.value else {
        expected(node, "a table", "", sink);
        return None;
    };
    let mut decoded = T::default();
    decoded.set_span(node.span);
    for entry in &table.entries {
        if !decoded.take(entry, sink) {
            let near = unknown_key(entry, T::KEYS.iter().copied(), sink);
            decoded.mark_bad(near);
        }
    }
    Some(decoded)
}

/// Decodes the keys of a workload from `entries`. Their table, at `at`, also has the keys `outer`.
/// `is_known`: whether any workload accepts a key.
pub(crate) fn fill<T: KeyTable>(
    at: SourceSpan,
    workload: &str,
    entries: &[&TomlEntry],
    outer: &'static [&'static str],
    is_known: impl Fn(&str) -> bool,
    sink: &mut ProblemSink,
) -> T {
    let mut table = T::default();
    table.set_span(at);
    for entry in entries {
        if table.take(entry, sink) {
            continue;
        }
        let keys = T::KEYS.iter().chain(outer).copied();
        if !is_known(&entry.key) {
            let near = unknown_key(entry, keys, sink);
            table.mark_bad(near);
            continue;
        }
        let message = format!("workload {workload} has no key `{}`", entry.key);
        let hint = format!("its keys are {}", T::KEYS.join(", "));
        sink.hinted(entry.key_span, message, hint);
    }
    table
}

/// A required value. Reports its absence at `at`, unless it is present and was invalid (`bad`).
pub(crate) fn require_key<'t, T>(
    value: &'t Option<T>,
    key: &'static str,
    (at, bad): (SourceSpan, &[&'static str]),
    what: &str,
    example: &str,
    sink: &mut ProblemSink,
) -> Option<&'t T> {
    if value.is_none() && !bad.contains(&key) {
        sink.hinted(at, format!("{what} has no `{key}`"), format!("add {key} = {example}"));
    }
    value.as_ref()
}
