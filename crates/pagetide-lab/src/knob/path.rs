//! Paths of knobs: a sysctl, a control file of a group, or a scenario key.
//!
//! Invariant: paths are split as in the loader, so an accepted path sets the knob that it names.

use super::clip;
use pagetide_core::config::{ControlFile, Sysctl};
use pagetide_core::control::GroupControl;
use pagetide_scenario::load;
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::model::{Group, Setup};
use pagetide_scenario::names::near::nearest_few;
use std::collections::BTreeSet;

/// The value of `path` in the setup, or its default.
pub(super) fn now(path: &str, setup: &Setup) -> Option<String> {
    if let Some(sysctl) = Sysctl::find(path) {
        let written = setup.sysctls.iter().rev().find(|write| write.name() == path);
        return Some(match written {
            Some(write) => write.to_string(),
            None => sysctl.file().default.to_owned(),
        });
    }
    if let Some((group, name)) = group_and_file(path) {
        let control = GroupControl::find(&name)?;
        let group = setup.groups.iter().find(|known| is_of(known, &group))?;
        let written = group.controls.iter().rev().find(|write| write.control == control);
        return Some(match written {
            Some(write) => write.to_string(),
            None => control.file().default.to_owned(),
        });
    }
    let size = |bytes| Some(Quantity::Bytes(bytes).to_string());
    match path {
        "machine.cpus" => Some(setup.machine.cpus.to_string()),
        "machine.memory" => match setup.machine.nodes.as_slice() {
            [node] => size(node.memory),
            _ => None,
        },
        "machine.zswap.max_pool_percent" => {
            setup.machine.zswap.map(|zswap| zswap.max_pool_percent.to_string())
        }
        "machine.swap" | "machine.swap.size" | "machine.swap.zram" => {
            match setup.machine.swap.as_slice() {
                [] => size(0),
                [area] => size(area.size),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The group and its file of `group.NAME.FILE`, split as in the loader.
pub(crate) fn group_and_file(path: &str) -> Option<(String, String)> {
    match load::path_parts(path).as_slice() {
        [first, group, file @ ..] if first == "group" && !file.is_empty() => {
            Some((group.clone(), file.join(".")))
        }
        _ => None,
    }
}

/// Whether a path with this name sets the group; copies are set together.
fn is_of(group: &Group, name: &str) -> bool {
    group.name == name || is_copy(group, name)
}

fn is_copy(group: &Group, name: &str) -> bool {
    let owner = Owner::new(&group.name);
    owner.copy.is_some() && owner.name == name
}

/// The control file of a path, if any. An unknown kernel name is an error.
pub(super) fn file(path: &str, setup: &Setup) -> Result<Option<ControlFile>, Mistake> {
    let unknown = |what: &str, name: &str, known: Vec<&str>, few: bool| {
        let near = nearest_few(name, known.iter().copied(), 3);
        let hint = match near.as_slice() {
            [] if few && !known.is_empty() => format!("there is `{}`", known.join("`, `")),
            [] => "docs/scenario.md lists them".to_owned(),
            near => format!("did you mean `{}`?", near.join("` or `")),
        };
        Err(Mistake::new(format!("there is no {what} `{}`", clip(name)), hint))
    };
    let is_sysctl = ["vm.", "block.", "transparent_hugepage.", "lru_gen."];
    if is_sysctl.iter().any(|directory| path.starts_with(directory)) {
        return match Sysctl::find(path) {
            Some(sysctl) => Ok(Some(*sysctl.file())),
            None => {
                let known = Sysctl::ALL.iter().map(|sysctl| sysctl.name()).collect();
                unknown("sysctl", path, known, false)
            }
        };
    }
    if let Some((group, name)) = group_and_file(path) {
        // The loader also accepts the index of a group.
        let is_place = group.parse::<usize>().is_ok_and(|place| place < setup.groups.len());
        if !is_place && !setup.groups.iter().any(|known| is_of(known, &group)) {
            let names = setup.groups.iter().map(|group| Owner::new(&group.name).name);
            let names: BTreeSet<String> = names.collect();
            return unknown("group", &group, names.iter().map(String::as_str).collect(), true);
        }
        if let Some((copy, file)) = name.split_once('.') {
            let one = format!("{group}.{copy}");
            if setup.groups.iter().any(|known| known.name == one && is_copy(known, &group)) {
                return Err(Mistake::new(
                    format!("`{}` is one of several copies", clip(&one)),
                    format!("set all copies together: group.{group}.{}", clip(file)),
                ));
            }
        }
        let name = name.as_str();
        return match GroupControl::find(name) {
            Some(control) => Ok(Some(*control.file())),
            None if ["at_start", "parent", "copies"].contains(&name) => Ok(None),
            None => {
                let known = GroupControl::ALL.iter().map(|control| control.name()).collect();
                unknown("control file", name, known, false)
            }
        };
    }
    if !path.contains('.') {
        let sysctls = Sysctl::ALL.iter().map(|sysctl| sysctl.name());
        return unknown(
            "knob",
            path,
            sysctls.chain(["machine.memory", "machine.cpus"]).collect(),
            false,
        );
    }
    Ok(None)
}
