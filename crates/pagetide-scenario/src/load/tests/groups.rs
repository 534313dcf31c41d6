//! Groups that are created and removed, operations on groups, and group policies.

use super::*;
use crate::model::{PageSize, Setup, TargetWrite};
use pagetide_core::config::{Policy, PolicyChoice};
use pagetide_core::control::GroupControlWrite;

/// A group that a task creates, and a task with the workload `phase`.
fn with_task(phase: &str) -> String {
    format!(
        "[[group]]\nname = \"late\"\nat_start = false\nmemory.low = \"8M\"\n\
        [[task]]\nname = \"admin\"\n{phase}"
    )
}

fn workload_of(text: &str) -> Workload {
    let scenario = sound(&format!("{SOUND}{text}"));
    let tasks = &scenario.variants[0].setup.tasks;
    tasks.last().unwrap().phases[0].workload.clone()
}

#[test]
fn groups_are_made_entered_and_removed() {
    let target = "target = \"late\"\n";
    let create = with_task(&format!("workload = \"create-group\"\n{target}"));
    assert_eq!(workload_of(&create), Workload::CreateGroup(CreateGroup { group: 0 }));
    let setup = sound(&format!("{SOUND}{create}")).variants.remove(0).setup;
    assert!(!setup.groups[0].at_start);
    assert_eq!(setup.groups[0].controls, [GroupControlWrite::read("memory.low", "8M").unwrap()]);
    let remove = with_task(&format!("workload = \"remove-group\"\n{target}"));
    assert_eq!(workload_of(&remove), Workload::RemoveGroup(RemoveGroup { group: 0 }));
    let join = with_task(&format!("workload = \"join-group\"\n{target}"));
    assert_eq!(workload_of(&join), Workload::JoinGroup(JoinGroup { group: Some(0) }));
    let leave = with_task("workload = \"join-group\"\n");
    assert_eq!(workload_of(&leave), Workload::JoinGroup(JoinGroup { group: None }));
}

#[test]
fn controls_are_written_as_they_stand() {
    let write =
        |keys: &str| workload_of(&with_task(&format!("workload = \"write-control\"\n{keys}")));
    let expected = |group: Option<usize>, control: &str, text: &str| {
        let write = TargetWrite::read(group, control, text, PageSize::Kib4).unwrap();
        Workload::WriteControl(WriteControl { write })
    };
    assert_eq!(
        write("control = \"memory.reclaim\"\ntext = \"100M\"\ntarget = \"late\"\n"),
        expected(Some(0), "memory.reclaim", "100M")
    );
    assert_eq!(
        write("control = \"memory.global_shrink_priority\"\ntext = -3\ntarget = \"late\"\n"),
        expected(Some(0), "memory.global_shrink_priority", "-3")
    );
    assert_eq!(
        write("control = \"vm.lowmem_reserve_ratio\"\ntext = [256, 32]\n"),
        expected(None, "vm.lowmem_reserve_ratio", "256 32")
    );
}

#[test]
fn a_task_in_phases_has_a_group_and_targets() {
    let text = format!(
        "{SOUND}group = \"old\"\n[[group]]\nname = \"old\"\n[[group]]\nname = \"new\"\n\
        [[task]]\nname = \"admin\"\ngroup = \"old\"\n[[task.phase]]\nname = \"away\"\n\
        workload = \"remove-group\"\ntarget = \"new\"\n[[task.phase]]\nname = \"again\"\n\
        workload = \"create-group\"\ntarget = \"new\"\n"
    );
    // A group that exists at the start may be created after it has been removed.
    let setup = sound(&text).variants.remove(0).setup;
    assert_eq!(setup.tasks[1].group, Some(0));
    assert_eq!(setup.tasks[1].phases[1].workload, Workload::CreateGroup(CreateGroup { group: 1 }));
}

#[test]
fn one_of_several_copies_is_a_target() {
    let groups = "[[group]]\nname = \"web\"\ncopies = 12\n[[group]]\nname = \"db\"\n";
    let of = |workload: &str, target: &str| {
        format!(
            "{groups}[[task]]\nname = \"t\"\nworkload = \"{workload}\"\ntarget = \"{target}\"\n"
        )
    };
    let write = "control = \"memory.max\"\ntext = \"64M\"\n";
    let max = GroupControlWrite::read("memory.max", "64M").unwrap();
    let target = Workload::WriteControl(WriteControl { write: TargetWrite::Group(11, max) });
    assert_eq!(workload_of(&format!("{}{write}", of("write-control", "web.11"))), target);
    let join = JoinGroup { group: Some(0) };
    assert_eq!(workload_of(&of("join-group", "web.0")), Workload::JoinGroup(join));
    let again = format!(
        "{groups}[[task]]\nname = \"t\"\nphase = [\n\
         {{ name = \"a\", workload = \"remove-group\", target = \"web.1\" }},\n\
         {{ name = \"b\", workload = \"create-group\", target = \"web.1\" }},\n]\n"
    );
    assert_eq!(workload_of(&again), Workload::RemoveGroup(RemoveGroup { group: 1 }));
}

#[test]
fn a_variant_decides_whether_a_group_exists_at_the_start() {
    let set = "[[group]]\nname = \"g\"\n[[variant]]\nname = \"v\"\nset.group.g.at_start = false\n";
    assert!(!sound(&format!("{SOUND}{set}")).variants[0].setup.groups[0].at_start);
}

fn chosen(setup: &Setup, key: &str) -> Option<&'static str> {
    setup.policies.get(Policy::find(key).unwrap()).map(PolicyChoice::name)
}

#[test]
fn policies_on_groups_are_there_when_named() {
    let keys = [
        "soft_limit",
        "soft_limit_root",
        "soft_limit_direct",
        "soft_limit_node",
        "shrink_priority",
        "group_walk",
    ];
    let setup = sound(SOUND).variants.remove(0).setup;
    assert!(keys.iter().all(|key| chosen(&setup, key).is_none()));
    let values = ["two-pass", "included", "ignored", "local", "hierarchical", "shared"];
    let lines: Vec<String> =
        keys.iter().zip(values).map(|(key, value)| format!("{key} = \"{value}\"\n")).collect();
    let setup = sound(&format!("{SOUND}[policy]\n{}", lines.concat())).variants.remove(0).setup;
    assert!(keys.iter().zip(values).all(|(key, value)| chosen(&setup, key) == Some(value)));
}

#[test]
fn groups_may_be_so_deep_and_no_deeper() {
    let chain = |depth: usize| {
        let mut text = String::from("[[group]]\nname = \"g0\"\n");
        for at in 1..depth {
            let above = at - 1;
            text += &format!("[[group]]\nname = \"g{at}\"\nparent = \"g{above}\"\n");
        }
        text
    };
    sound(&format!("{SOUND}{}", chain(128)));
    let errors =
        load_str("deep", &format!("{SOUND}{}", chain(6000)), Path::new("."), &Overrides::default())
            .unwrap_err()
            .to_string();
    assert!(errors.contains("the group `g128` is 129 levels deep"), "{errors}");
    assert!(errors.contains("groups may be at most 128 levels deep"), "{errors}");
}

#[test]
fn groups_without_a_memory_controller_have_no_files_of_memory() {
    let groups = "[[group]]\nname = \"pod\"\nsubtree_control = \"none\"\n\
        [[group]]\nname = \"in\"\nparent = \"pod\"\n[[group]]\nname = \"deep\"\nparent = \"in\"\n";
    let setup = sound(&format!("{SOUND}{groups}")).variants.remove(0).setup;
    let has: Vec<bool> = setup.groups.iter().map(|group| group.has_memory).collect();
    assert_eq!(has, [true, false, false]);
    assert_eq!(setup.charged_group(Some(2)), Some(0));
    assert_eq!(setup.charged_group(None), None);
}
