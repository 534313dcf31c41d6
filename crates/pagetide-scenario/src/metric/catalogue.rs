//! Every metric that a record can have: its name, unit and meaning, from the declarations. `pagetide metrics` prints
//! it, docs/metrics.md is made of it, and rows of a report must be in it.
//!
//! Invariant: a metric that the simulator records is here (`tests/catalogue.rs` of pagetide-sim).

use super::declared::{self, buddyinfo_name, OF_CACHES, SLABINFO};
use super::key::Kind;
use super::COUNTED;
use crate::record::Unit;

use pagetide_core::plugin::Wrong;
use pagetide_core::units::NR_PAGE_ORDERS;
use pagetide_core::vmstat::{Event, NodeStat};
use std::borrow::Cow;

/// A metric, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, the last part of its key. `CACHE` in it stands for a cache, `nodeN.ZONE` for a zone.
    pub name: Cow<'static, str>,
    /// What it counts.
    pub unit: Unit,
    /// What it can be of.
    pub of: Vec<Kind>,
    /// Where Linux says it. "Pagetide": nowhere.
    pub source: &'static str,
    pub about: Cow<'static, str>,
}

const VMSTAT: &str = "/proc/vmstat";

/// What memory.stat has besides the events of /proc/vmstat: kswapd's part and that of tasks together.
pub(super) const SUMS: [&str; 2] = ["pgscan", "pgsteal"];

/// Lines of /proc/vmstat that are neither events nor counted for nodes.
const OTHERS: [(&str, &str); 10] = [
    ("nr_free_pages", "free pages"),
    ("nr_zone_inactive_anon", "pages on inactive lists of anonymous memory, by zone"),
    ("nr_zone_active_anon", "pages on active lists of anonymous memory, by zone"),
    ("nr_zone_inactive_file", "pages on inactive lists of files, by zone"),
    ("nr_zone_active_file", "pages on active lists of files, by zone"),
    ("nr_zone_unevictable", "pages that cannot be evicted, by zone"),
    ("nr_zone_write_pending", "dirty pages, and pages that are being written"),
    ("nr_mlock", "pages that are locked in memory"),
    ("workingset_nodes", "nodes of the page cache that hold nothing but shadows of evicted pages"),
    ("nr_dirty_threshold", "dirty pages at which writers are throttled"),
];

/// All of them, in the order of docs/metrics.md.
pub fn all() -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for metric in declared::ALL {
        all.push(Entry {
            name: metric.name.into(),
            unit: metric.unit,
            of: metric.of.to_vec(),
            source: metric.source,
            about: metric.about.into(),
        });
    }
    for what in OF_CACHES {
        all.push(Entry {
            name: format!("{SLABINFO}CACHE.{what}").into(),
            unit: Unit::Count,
            of: vec![Kind::Machine, Kind::Phase, Kind::Idle, Kind::Shrunk],
            source: "/proc/slabinfo",
            about: "that column, of each cache that names and pipes are made of, if some task makes either".into(),
        });
    }
    let of_vmstat = |name: Cow<'static, str>, of: Vec<Kind>, unit, about: Cow<'static, str>| {
        Entry { name, unit, of, source: VMSTAT, about }
    };
    for event in Event::ALL {
        let of = match COUNTED.contains(&event) {
            true => {
                vec![Kind::Machine, Kind::Done, Kind::Phase, Kind::Group, Kind::PhaseGroup]
            }
            false => vec![Kind::Machine, Kind::Done, Kind::Phase],
        };
        all.push(of_vmstat(event.name().into(), of, Unit::Count, event.about().into()));
    }
    let about_sums = [
        "Inactive pages of the group looked at, by kswapd and by tasks.",
        "Pages of the group reclaimed, by kswapd and by tasks.",
    ];
    for (name, about) in SUMS.into_iter().zip(about_sums) {
        all.push(Entry {
            name: name.into(),
            unit: Unit::Count,
            of: vec![Kind::Group, Kind::PhaseGroup],
            source: "memory.stat",
            about: about.into(),
        });
    }
    let levels = || vec![Kind::Machine, Kind::Done, Kind::Phase];
    for stat in NodeStat::ALL {
        all.push(of_vmstat(stat.name().into(), levels(), Unit::Pages, stat.about().into()));
    }
    for (name, about) in OTHERS {
        let of = if name == "nr_free_pages" { levels() } else { vec![Kind::Machine] };
        all.push(of_vmstat(name.into(), of, Unit::Pages, about.into()));
    }
    let about = "dirty pages at which write-back begins";
    let of = vec![Kind::Machine];
    all.push(of_vmstat("nr_dirty_background_threshold".into(), of, Unit::Pages, about.into()));
    for order in 0..NR_PAGE_ORDERS {
        all.push(Entry {
            name: format!("nr_free_blocks_{order}").into(),
            unit: Unit::Count,
            of: levels(),
            source: "/proc/buddyinfo",
            about: format!("free blocks of order {order}, all zones together").into(),
        });
    }
    for order in 0..NR_PAGE_ORDERS {
        all.push(Entry {
            name: buddyinfo_name('N', "ZONE", order).into(),
            unit: Unit::Count,
            of: levels(),
            source: "/proc/buddyinfo",
            about: format!("free blocks of order {order} of each zone").into(),
        });
    }
    for wrong in Wrong::ALL {
        all.push(Entry {
            name: wrong.name().into(),
            unit: Unit::Count,
            of: vec![Kind::Machine],
            source: "Pagetide",
            about: format!("times that a policy of a plug-in was wrong: {}", wrong.text()).into(),
        });
    }
    all
}

/// Whether a scope of this kind can have a metric of this name.
pub fn has(all: &[Entry], kind: Kind, name: &str) -> bool {
    // Of what is said line by line the last part says what it is.
    let end = |name: &str| name.rsplit_once('.').map_or(String::new(), |(_, end)| end.to_owned());
    let is_it = |entry: &Entry| match declared::file_in(name) {
        Some(file) => entry.name.starts_with(file) && end(&entry.name) == end(name),
        None => entry.name == name,
    };
    all.iter().any(|entry| is_it(entry) && entry.of.contains(&kind))
}
