//! Every metric that a record can have: its name, unit and meaning, from the declarations. `pagetide metrics` prints
//! it, and rows of a report must be in it.
//!
//! Invariant: every metric of the simulator is listed here (`tests/catalogue.rs` of pagetide-sim).

use super::declared::{self, buddyinfo_name, OF_CACHES, SLABINFO};
use super::key::ScopeKind;
use super::COUNTED;
use crate::record::Unit;

use pagetide_core::reclaim::plugin::PolicyFault;
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::units::NR_PAGE_ORDERS;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// A metric and its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MetricEntry {
    /// The name in the key. `CACHE` in it stands for a cache, `nodeN.ZONE` for a zone.
    pub name: Cow<'static, str>,
    pub unit: Unit,
    /// Kinds of scope that can have it.
    pub of: Vec<ScopeKind>,
    /// Where Linux reports it; "Pagetide" if Linux does not.
    pub source: &'static str,
    /// One sentence.
    pub about: Cow<'static, str>,
}

const VMSTAT: &str = "/proc/vmstat";

/// Names in memory.stat that are no event of /proc/vmstat: the sums over kswapd and tasks.
pub(super) const SUMS: [&str; 2] = ["pgscan", "pgsteal"];

/// Lines of /proc/vmstat that are neither events nor per-node counters.
const OTHERS: [(&str, &str); 10] = [
    ("nr_free_pages", "free pages"),
    ("nr_zone_inactive_anon", "pages on inactive lists of anonymous memory, by zone"),
    ("nr_zone_active_anon", "pages on active lists of anonymous memory, by zone"),
    ("nr_zone_inactive_file", "pages on inactive lists of files, by zone"),
    ("nr_zone_active_file", "pages on active lists of files, by zone"),
    ("nr_zone_unevictable", "pages that cannot be evicted, by zone"),
    ("nr_zone_write_pending", "dirty pages and pages under writeback"),
    ("nr_mlock", "pages locked in memory (mlock)"),
    ("workingset_nodes", "nodes of the page cache that hold only shadow entries of evicted pages"),
    ("nr_dirty_threshold", "dirty pages at which writers are throttled"),
];

/// All of them, in the order of `pagetide metrics`.
pub fn all() -> Vec<MetricEntry> {
    let mut all: Vec<MetricEntry> = Vec::new();
    for metric in declared::ALL {
        all.push(MetricEntry {
            name: metric.name.into(),
            unit: metric.unit,
            of: metric.scopes.to_vec(),
            source: metric.source,
            about: metric.about.into(),
        });
    }
    for what in OF_CACHES {
        all.push(MetricEntry {
            name: format!("{SLABINFO}CACHE.{what}").into(),
            unit: Unit::Count,
            of: vec![ScopeKind::Machine, ScopeKind::Phase, ScopeKind::Idle, ScopeKind::Shrunk],
            source: "/proc/slabinfo",
            about: "that column, for each cache used by file names and pipes; only if a task makes one \
                    of these"
                .into(),
        });
    }
    let of_vmstat = |name: Cow<'static, str>,
                     of: Vec<ScopeKind>,
                     unit,
                     about: Cow<'static, str>| {
        MetricEntry { name, unit, of, source: VMSTAT, about }
    };
    for event in Event::ALL {
        let of = match COUNTED.contains(&event) {
            true => {
                vec![
                    ScopeKind::Machine,
                    ScopeKind::Done,
                    ScopeKind::Phase,
                    ScopeKind::Group,
                    ScopeKind::PhaseGroup,
                ]
            }
            false => vec![ScopeKind::Machine, ScopeKind::Done, ScopeKind::Phase],
        };
        all.push(of_vmstat(event.name().into(), of, Unit::Count, event.about().into()));
    }
    let about_sums = [
        "Inactive pages of the group that kswapd and tasks scanned.",
        "Pages of the group that kswapd and tasks reclaimed.",
    ];
    for (name, about) in SUMS.into_iter().zip(about_sums) {
        all.push(MetricEntry {
            name: name.into(),
            unit: Unit::Count,
            of: vec![ScopeKind::Group, ScopeKind::PhaseGroup],
            source: "memory.stat",
            about: about.into(),
        });
    }
    let levels = || vec![ScopeKind::Machine, ScopeKind::Done, ScopeKind::Phase];
    for stat in NodeStat::ALL {
        all.push(of_vmstat(stat.name().into(), levels(), Unit::Pages, stat.about().into()));
    }
    for (name, about) in OTHERS {
        let of = if name == "nr_free_pages" { levels() } else { vec![ScopeKind::Machine] };
        all.push(of_vmstat(name.into(), of, Unit::Pages, about.into()));
    }
    let about = "number of dirty pages at which background writeback starts";
    let of = vec![ScopeKind::Machine];
    all.push(of_vmstat("nr_dirty_background_threshold".into(), of, Unit::Pages, about.into()));
    for order in 0..NR_PAGE_ORDERS {
        all.push(MetricEntry {
            name: format!("nr_free_blocks_{order}").into(),
            unit: Unit::Count,
            of: levels(),
            source: "/proc/buddyinfo",
            about: format!("free blocks of order {order}, sum over all zones").into(),
        });
    }
    for order in 0..NR_PAGE_ORDERS {
        all.push(MetricEntry {
            name: buddyinfo_name('N', "ZONE", order).into(),
            unit: Unit::Count,
            of: levels(),
            source: "/proc/buddyinfo",
            about: format!("free blocks of order {order} in each zone").into(),
        });
    }
    for wrong in PolicyFault::ALL {
        all.push(MetricEntry {
            name: wrong.name().into(),
            unit: Unit::Count,
            of: vec![ScopeKind::Machine],
            source: "Pagetide",
            about: format!("mistakes of a registered policy: {}", wrong.text()).into(),
        });
    }
    all
}

/// The metric with this name that a scope of this kind can have.
pub fn find<'a>(all: &'a [MetricEntry], kind: ScopeKind, name: &str) -> Option<&'a MetricEntry> {
    // A metric of one line per cache or zone is known by its last part.
    let end = |name: &str| name.rsplit_once('.').map_or(String::new(), |(_, end)| end.to_owned());
    let is_it = |entry: &MetricEntry| match declared::file_prefix(name) {
        Some(file) => entry.name.starts_with(file) && end(&entry.name) == end(name),
        None => entry.name == name,
    };
    all.iter().find(|entry| is_it(entry) && entry.of.contains(&kind))
}
