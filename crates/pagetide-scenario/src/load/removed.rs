//! Policies and variants of policies that were removed. A scenario that names one learns since when
//! it is missing, and what to write instead.
//!
//! Invariant: no entry is a policy or a variant that exists.

use super::span::{ProblemSink, SourceSpan};

/// A removed variant, or a removed policy with all its variants.
pub(crate) struct RemovedPolicy {
    /// Key in `[policy]`.
    pub(crate) key: &'static str,
    pub(crate) variant: Option<&'static str>,
    /// Day of the removal.
    pub(crate) date: &'static str,
    pub(crate) instead: &'static str,
}

const fn variant(
    key: &'static str,
    variant: &'static str,
    date: &'static str,
    instead: &'static str,
) -> RemovedPolicy {
    RemovedPolicy { key, variant: Some(variant), date, instead }
}

const fn policy(key: &'static str, date: &'static str, instead: &'static str) -> RemovedPolicy {
    RemovedPolicy { key, variant: None, date, instead }
}

pub(crate) const REMOVED: &[RemovedPolicy] = &[
    variant("per_cpu_lists", "pageblocks", "2026-11-27", "`linux-6.1` is Linux's own choice"),
    policy("objcg_stock", "2026-11-27", "without it, a CPU has one stock, as in Linux"),
    policy("slab_owners", "2026-11-27", "without it, owners are pointers, as in Linux"),
    variant("slub", "fullest", "2026-11-27", "`linux-6.1` is Linux's own choice"),
    variant("slub", "lowest", "2026-11-27", "`linux-6.1` is Linux's own choice"),
    variant("soft_limit", "graded", "2026-11-27", "`hierarchical` is the patch of 2012"),
];

/// Reports a policy (`variant` is `None`) or a variant if it was removed; returns whether it was.
pub(crate) fn report_removed(
    key: &str,
    variant: Option<&str>,
    span: SourceSpan,
    sink: &mut ProblemSink,
) -> bool {
    let found = REMOVED.iter().find(|removed| removed.key == key && removed.variant == variant);
    let Some(RemovedPolicy { date, instead, .. }) = found else { return false };
    let message = match variant {
        Some(variant) => format!("policy `{key}` has no variant `{variant}`"),
        None => format!("there is no policy `{key}`"),
    };
    sink.hinted(span, message, format!("it was removed on {date}; {instead}"));
    true
}
