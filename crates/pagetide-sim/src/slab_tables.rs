//! Slab files of a record, in addition to /proc/slabinfo: slabs by group and by cache, and the
//! tuning of caches.
//!
//! Linux has the files of /sys/kernel/slab. The two tables under /pagetide are additions, similar
//! to slabtop(1).
//!
//! Invariant: the objects of a table add up to those of all caches.

use pagetide_core::interface::kernel::Kernel;
use pagetide_core::process::Machine;
use pagetide_core::slab::breakdown::GroupSlabs;
use pagetide_core::units::MemcgId;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The tables, and the files of every cache. `paths`: directory of each group.
pub(crate) fn files(machine: &Machine, paths: &BTreeMap<MemcgId, String>) -> Vec<(String, String)> {
    let mut files = vec![
        ("/pagetide/slab-groups".to_owned(), groups(machine, paths)),
        ("/pagetide/slab-caches".to_owned(), caches(machine)),
    ];
    for (id, cache) in machine.slabs.kmem_caches() {
        // A group's clone has the files of its cache.
        if machine.slabs.find_cache(&cache.name) != Some(id) {
            continue;
        }
        for file in Kernel::cache_control_names().filter(|file| *file != "shrink") {
            if let Ok(text) = machine.read_control(&format!("slab.{}.{file}", cache.name)) {
                files.push((format!("/sys/kernel/slab/{}/{file}", cache.name), text));
            }
        }
    }
    files
}

fn groups(machine: &Machine, paths: &BTreeMap<MemcgId, String>) -> String {
    let rows = machine.slabs_by_group();
    let name = |row: &GroupSlabs| {
        let path =
            paths.get(&row.memcg).map_or("", |path| path.trim_start_matches("/sys/fs/cgroup"));
        let path = if path.is_empty() { "/" } else { path };
        if row.removed {
            format!("{path} (removed)")
        } else {
            path.to_owned()
        }
    };
    let width = rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0).max(5);
    let mut out = format!(
        "{:<width$} {:>12} {:>12} {:>12} {:>13} {:>8} {:>6} {:>9} {:>9} {:>5}\n",
        "group",
        "kmem",
        "slab",
        "reclaimable",
        "unreclaimable",
        "objects",
        "caches",
        "dentries",
        "inodes",
        "dying"
    );
    for row in &rows {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:<width$} {:>12} {:>12} {:>12} {:>13} {:>8} {:>6} {:>9} {:>9} {:>5}",
            name(row),
            row.kmem,
            row.reclaimable + row.unreclaimable,
            row.reclaimable,
            row.unreclaimable,
            row.objects,
            row.clones,
            row.dentries,
            row.inodes,
            row.dying_groups
        );
    }
    out
}

/// Table of caches, sorted by slab size, largest first.
fn caches(machine: &Machine) -> String {
    let rows = machine.slabs_by_cache();
    let names = rows.iter().filter_map(|(id, _)| machine.slabs.kmem_cache(*id));
    let width = names.map(|cache| cache.name.chars().count()).max().unwrap_or(0).max(5);
    let mut out = format!(
        "{:<width$} {:>8} {:>8} {:>12} {:>11}\n",
        "cache", "objects", "slabs", "bytes", "utilisation"
    );
    for (id, usage) in rows {
        let Some(cache) = machine.slabs.kmem_cache(id) else { continue };
        let utilisation = match usage.bytes {
            0 => "-".to_owned(),
            bytes => format!("{:.1}%", usage.active_bytes as f64 * 100.0 / bytes as f64),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:<width$} {:>8} {:>8} {:>12} {utilisation:>11}",
            cache.name, usage.active_objs, usage.num_slabs, usage.bytes
        );
    }
    out
}
