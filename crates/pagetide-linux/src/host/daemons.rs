//! The configuration of the daemons that kill: kubelet, systemd-oomd and earlyoom.
//!
//! Sources: `KubeletConfiguration` of Kubernetes 1.34 and the places where distributions put it;
//! oomd.conf(5) and systemd.resource-control(5) of systemd 257 with their drop-ins (a file in /etc
//! replaces one of the same name in /run, and that one in /usr/lib; files apply in the order of their
//! names); /etc/default/earlyoom. Invariant: a daemon without a file is absent. Options of a command
//! line, as of kubelet's unit, are not read.

use super::files::HostFiles;
use super::note::{shown, ImportNote};
use super::setting::{find, parse_systemd, parse_words, parse_yaml, ConfigSetting};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// Where kubelet's configuration is: kubeadm, GKE, Bottlerocket, EKS. Also
/// /etc/kubernetes/kubelet-config*.
const KUBELET: [&str; 5] = [
    "/var/lib/kubelet/config.yaml",
    "/home/kubernetes/kubelet-config.yaml",
    "/etc/kubernetes/kubelet/config",
    "/etc/kubernetes/kubelet/config.json",
    "/etc/kubernetes/kubelet/kubelet-config.json",
];
const EARLYOOM: &str = "/etc/default/earlyoom";
/// Directories of systemd; a later one has precedence.
const SYSTEMD: [&str; 3] = ["/usr/lib/systemd", "/run/systemd", "/etc/systemd"];

/// The daemons with their settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostDaemons {
    pub kubelet: Option<Vec<ConfigSetting>>,
    /// oomd.conf and its drop-ins.
    pub oomd: Vec<ConfigSetting>,
    /// Units with `ManagedOOM...=` settings, by name.
    pub oomd_units: BTreeMap<String, Vec<ConfigSetting>>,
    pub earlyoom: Option<EarlyoomArgs>,
}

/// The words of EARLYOOM_ARGS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlyoomArgs {
    pub line: usize,
    pub words: VecDeque<String>,
}

impl EarlyoomArgs {
    /// A note about an option.
    pub(super) fn note(&self, message: &str, option: &str) -> ImportNote {
        let line = Some(self.line);
        ImportNote { line, text: shown(option), ..ImportNote::new(EARLYOOM, message) }
    }
}

impl HostDaemons {
    pub(super) fn read(files: &HostFiles, notes: &mut Vec<ImportNote>) -> HostDaemons {
        let earlyoom = files.read(EARLYOOM, notes);
        HostDaemons {
            kubelet: kubelet(files, notes),
            oomd: oomd(files, notes),
            oomd_units: oomd_units(files),
            earlyoom: earlyoom
                .and_then(|text| parse_words("EARLYOOM_ARGS", &text))
                .map(|(line, words)| EarlyoomArgs { line, words }),
        }
    }

    /// The settings of systemd-oomd for the unit that is the group `path`; empty if it has none.
    /// Drop-ins of a type (`slice.d`) come first, then those of a template, then the unit's own.
    pub(super) fn oomd_unit(&self, path: &str) -> Vec<&ConfigSetting> {
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("-.slice");
        let kind = name.rsplit('.').next().unwrap_or_default();
        let template = name.split_once('@').map(|(before, _)| format!("{before}@.{kind}"));
        let names = [Some(kind.to_owned()), template, Some(name.to_owned())];
        names.iter().flatten().filter_map(|name| self.oomd_units.get(name)).flatten().collect()
    }
}

/// Whether the group `path` is a pod of kubelet, with the driver `systemd` or `cgroupfs`:
/// /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice, /kubepods/burstable/podUID.
pub(super) fn is_pod(path: &str) -> bool {
    let Some((above, name)) = path.rsplit_once('/') else { return false };
    let mut above = above.split('/');
    is_pod_name(name)
        && above.clone().any(|part| part.starts_with("kubepods"))
        && !above.any(is_pod_name)
}

fn is_pod_name(name: &str) -> bool {
    name.starts_with("pod") || (name.starts_with("kubepods-") && name.contains("-pod"))
}

fn kubelet(files: &HostFiles, notes: &mut Vec<ImportNote>) -> Option<Vec<ConfigSetting>> {
    let directory = Path::new("/etc/kubernetes");
    let named = files.list(directory, false, &mut Vec::new());
    let named = named.into_iter().filter(|name| {
        let name = name.to_string_lossy();
        let is_text = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        name.starts_with("kubelet-config") && is_text
    });
    let places = KUBELET.iter().map(PathBuf::from).chain(named.map(|name| directory.join(name)));
    let mut found: Option<Vec<ConfigSetting>> = None;
    for place in places {
        let Some(text) = files.read(&place, notes) else { continue };
        let place = shown(&place.to_string_lossy());
        if found.is_some() {
            notes.push(ImportNote::new(
                place,
                "another configuration of kubelet; the first is taken",
            ));
            continue;
        }
        let settings = parse_yaml(&place, &text, notes);
        match find(&settings, "kind").map(|kind| kind.text.as_str()) {
            Some("KubeletConfiguration") => found = Some(settings),
            _ => notes.push(ImportNote::new(place, "no document of kind KubeletConfiguration")),
        }
    }
    found
}

/// The drop-ins of `name` in the directories of systemd, in the order in which they apply.
fn drop_ins(files: &HostFiles, name: &str) -> Vec<PathBuf> {
    let mut by_name = BTreeMap::new();
    for top in SYSTEMD {
        let directory = Path::new(top).join(format!("{name}.d"));
        for file in files.list(&directory, false, &mut Vec::new()) {
            if file.extension().is_some_and(|extension| extension == "conf") {
                by_name.insert(file.clone(), directory.join(file));
            }
        }
    }
    by_name.into_values().collect()
}

fn oomd(files: &HostFiles, notes: &mut Vec<ImportNote>) -> Vec<ConfigSetting> {
    let main = SYSTEMD.iter().rev().map(|top| Path::new(top).join("oomd.conf"));
    let main = main.into_iter().find(|place| files.exists(place));
    let places = main.into_iter().chain(drop_ins(files, "oomd.conf"));
    let mut settings = Vec::new();
    for place in places {
        let Some(text) = files.read(&place, notes) else { continue };
        settings.extend(parse_systemd(&shown(&place.to_string_lossy()), &text));
    }
    settings
}

/// Units, types and templates of units with `ManagedOOM...=`.
fn oomd_units(files: &HostFiles) -> BTreeMap<String, Vec<ConfigSetting>> {
    let is_unit = |name: &str| {
        name.rsplit('.').next().is_some_and(|kind| matches!(kind, "slice" | "service" | "scope"))
    };
    let mut names = BTreeMap::new();
    for top in SYSTEMD {
        let directory = Path::new(top).join("system");
        for file in files.list(&directory, false, &mut Vec::new()) {
            let Some(name) = file.to_str() else { continue };
            let unit = name.strip_suffix(".d").unwrap_or(name);
            if is_unit(unit) {
                let place = directory.join(unit);
                let own: &mut Option<PathBuf> = names.entry(unit.to_owned()).or_default();
                if unit == name {
                    *own = Some(place);
                }
            }
        }
    }
    let mut units = BTreeMap::new();
    for (unit, own) in names {
        let places = own.into_iter().chain(drop_ins(files, &format!("system/{unit}")));
        let texts = places.filter_map(|place| {
            // A file that cannot be read, or a link to /dev/null, has no settings.
            let text = files.read(&place, &mut Vec::new())?;
            Some(parse_systemd(&shown(&place.to_string_lossy()), &text))
        });
        let settings = texts.flatten().filter_map(|mut setting| {
            let key = setting.key.rsplit('/').next()?;
            setting.key = key.starts_with("ManagedOOM").then(|| key.to_owned())?;
            Some(setting)
        });
        let settings: Vec<ConfigSetting> = settings.collect();
        if !settings.is_empty() {
            units.insert(unit, settings);
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_the_names_of_both_drivers() {
        for pod in [
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a_1.slice",
            "/kubepods.slice/kubepods-pod0a_1.slice",
            "/kubepods/burstable/pod0a-1",
            "/kubepods/pod0a-1",
        ] {
            assert!(is_pod(pod), "{pod}");
        }
        for other in [
            "/kubepods.slice",
            "/kubepods.slice/kubepods-burstable.slice",
            "/kubepods/burstable/pod0a-1/c0ffee",
            "/kubepods.slice/kubepods-pod0a.slice/cri-containerd-x.scope",
            "/pods/pod1",
            "/",
            "",
        ] {
            assert!(!is_pod(other), "{other}");
        }
    }
}
