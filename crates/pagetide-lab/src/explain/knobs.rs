//! Topics of knobs: control files of the machine, of groups and of caches, and policies.
//!
//! Adds the path of each file in Linux. The core declares values and meaning (`config.rs`,
//! `control/group.rs`, `control/cache.rs`).
//!
//! Invariant: `set` of a topic is an option that the loader accepts, with placeholders in capitals.

use super::{linux, Topic, TopicChoice, TopicKind};
use pagetide_core::ageing::generations::command::LruGenWrite;
use pagetide_core::config::{
    CgroupVersion, ControlFile, ControlForm, ControlOrigin, Policy, PolicyChoice, Sysctl,
};
use pagetide_core::control::{CacheControl, GroupControl};
use pagetide_scenario::names::takes::takes;
use pagetide_sim::foresight;

/// All knobs, in the order of docs/scenario.md.
pub(super) fn all(index: &[TopicChoice]) -> Vec<Topic> {
    let mut all: Vec<Topic> = Sysctl::ALL.iter().map(|sysctl| of_machine(*sysctl)).collect();
    all.extend(CacheControl::written().map(|control| of_cache(control.file())));
    all.extend(GroupControl::ALL.iter().map(|control| of_group(*control)));
    for topic in &mut all {
        topic.functions = linux::about(index, &topic.name);
    }
    all.push(lru_gen(index));
    all.extend(Policy::ALL.iter().filter(|policy| !policy.is_implied()).map(|one| policy(*one)));
    all
}

/// The file of debugfs, with the sysctls that begin with its name.
fn lru_gen(index: &[TopicChoice]) -> Topic {
    let sysctls = Sysctl::ALL.iter().map(|sysctl| sysctl.file());
    let sysctls = sysctls.filter(|file| file.name.starts_with("lru_gen."));
    let choices = sysctls.map(|file| TopicChoice {
        name: file.name.to_owned(),
        about: format!("sysctl. {}", file.doc),
    });
    let functions = index.iter().filter(|function| function.name.starts_with("lru_gen_seq"));
    Topic {
        takes: "+ MEMCG NODE GENERATION [CAN_SWAP [FORCE]] to begin a generation, - MEMCG NODE \
                GENERATION [SWAPPINESS [PAGES]] to evict up to one"
            .to_owned(),
        since: "Linux 6.1".to_owned(),
        linux: foresight::LRU_GEN.to_owned(),
        functions: functions.cloned().collect(),
        set: "workload write-control with control = \"lru_gen\"".to_owned(),
        choices: choices.collect(),
        document: "docs/scenario.md#write-control".to_owned(),
        ..Topic::new(
            TopicKind::DebugFile,
            LruGenWrite::NAME,
            "The generations of each group on each node, with their ages and pages. For policy lru \
             = mglru; `pagetide inspect FILE lru_gen` prints it.",
        )
    }
}

fn topic(kind: TopicKind, name: String, file: &ControlFile) -> Topic {
    let choices = match file.form {
        ControlForm::Policy(policy) => policy.variants().iter().map(|one| choice(*one)).collect(),
        _ => Vec::new(),
    };
    Topic {
        takes: takes(file),
        default: file.default.to_owned(),
        since: file.since.to_string(),
        choices,
        ..Topic::new(kind, name, file.doc)
    }
}

/// How to set the file; action files are written by a workload.
fn set(file: &ControlFile, path: &str) -> String {
    match file.form.is_action() {
        true => format!("workload write-control with control = \"{}\"", file.name),
        false => format!("--set {path}=VALUE"),
    }
}

fn of_machine(sysctl: Sysctl) -> Topic {
    let file = sysctl.file();
    let linux = match (file.since, sysctl.path()) {
        (ControlOrigin::Patch(_), _) => String::new(),
        (ControlOrigin::Linux(_), Some(place)) => place,
        (ControlOrigin::Linux(_), None) => {
            let file = file.name.rsplit_once('.').map_or(file.name, |(_, file)| file);
            format!("/sys/block/DISK/queue/{file}")
        }
    };
    Topic {
        linux,
        set: set(file, &format!("sysctl.{}", file.name)),
        document: "docs/scenario.md#sysctl".to_owned(),
        ..topic(TopicKind::Sysctl, file.name.to_owned(), file)
    }
}

fn of_cache(file: &ControlFile) -> Topic {
    let name = format!("slab.CACHE.{}", file.name);
    Topic {
        linux: format!("/sys/kernel/slab/CACHE/{}", file.name),
        set: match file.form.is_action() {
            true => format!("workload write-control with control = \"{name}\""),
            false => format!("--set sysctl.{name}=VALUE"),
        },
        document: "docs/scenario.md#sysctl".to_owned(),
        ..topic(TopicKind::CacheFile, name, file)
    }
}

fn of_group(control: GroupControl) -> Topic {
    let file = control.file();
    let root = match control.version() {
        CgroupVersion::V1 => "/sys/fs/cgroup/memory",
        CgroupVersion::V2 => "/sys/fs/cgroup",
    };
    let linux = match file.since {
        ControlOrigin::Patch(_) => String::new(),
        ControlOrigin::Linux(_) => format!("{root}/GROUP/{}", file.name),
    };
    Topic {
        linux,
        set: set(file, &format!("group.NAME.{}", file.name)),
        document: "docs/scenario.md#group".to_owned(),
        ..topic(TopicKind::GroupFile, file.name.to_owned(), file)
    }
}

fn choice(choice: PolicyChoice) -> TopicChoice {
    TopicChoice { name: choice.name().to_owned(), about: choice.doc().to_owned() }
}

fn policy(policy: Policy) -> Topic {
    let name = format!("policy.{}", policy.name());
    let boot = if policy.is_chosen_at_boot() { " Chosen at boot." } else { "" };
    Topic {
        takes: policy.variant_list(),
        default: policy.default_variant().name().to_owned(),
        set: format!("--set {name}=VALUE"),
        choices: policy.variants().iter().map(|one| choice(*one)).collect(),
        document: "docs/scenario.md#policy".to_owned(),
        ..Topic::new(TopicKind::Policy, name, format!("{}{boot}", policy.doc()))
    }
}
