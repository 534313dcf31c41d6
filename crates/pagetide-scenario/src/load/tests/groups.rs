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
/// The line of `phase` in that text.
const PHASE: isize = 7;

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
fn targets_must_be_there() {
    for kind in ["create-group", "remove-group"] {
        let line = format!("workload = \"{kind}\"\n");
        expect(
            &with_task(&line),
            PHASE,
            12,
            &format!("\"{kind}\""),
            &format!("workload {kind} has no `target`"),
            "add target = \"batch\"",
        );
    }
    for kind in ["create-group", "remove-group", "join-group"] {
        expect(
            &with_task(&format!("workload = \"{kind}\"\ntarget = \"lat\"\n")),
            PHASE + 1,
            10,
            "\"lat\"",
            "there is no group `lat`",
            "did you mean `late`?",
        );
    }
    expect(
        &with_task("workload = \"create-group\"\ngroup = \"late\"\ntarget = \"late\"\n"),
        PHASE + 1,
        9,
        "\"late\"",
        "the group `late` does not exist at the start",
        "leave `group` out, and let the task enter with workload = \"join-group\" after a create-group",
    );
    expect(
        "[[group]]\nname = \"g\"\n[[task]]\nname = \"b\"\nworkload = \"create-group\"\n\
        target = \"g\"\n",
        6,
        10,
        "\"g\"",
        "the group `g` already exists at the start",
        "write at_start = false in its [[group]], or remove the group first",
    );
    expect(
        "[[group]]\nname = \"a\"\nat_start = false\n[[group]]\nname = \"b\"\nparent = \"a\"\n",
        6,
        10,
        "\"a\"",
        "the group `b` exists at the start, but its parent `a` does not",
        "write at_start = false here too, or choose another parent",
    );
    expect(
        "target = \"g\"\n",
        1,
        1,
        "target",
        "workload touch has no key `target`",
        "its keys are size, write, order, exponent, stride, passes, region, advice, compute, rate, load",
    );
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
    let one = |target: &str, message: &str, hint: &str| {
        let text = format!("\"{target}\"");
        expect(&of("remove-group", target), 9, 10, &text, message, hint);
    };
    one("web", "`web` has several copies", "say which: \"web.0\", for example");
    let copies = "it has copies `web.0` to `web.11`";
    for target in ["web.12", "web.01", "web.99999999999999999999"] {
        one(target, &format!("there is no group `{target}`"), copies);
    }
    one("db.0", "there is no group `db.0`", "`db` has one copy: write \"db\"");
    one("wbe.0", "there is no group `wbe`", "did you mean `web`?");
    let hint = "write the name of a group, or of one of its copies: \"batch.0\"";
    for target in ["web.", "web.x", ".0", "web.0.0"] {
        one(target, &format!("`{target}` is not a valid group name"), hint);
    }
    // Another copy exists at the start.
    let other = again.replacen("web.1", "web.2", 1);
    let found = told(&format!("{SOUND}{other}"));
    assert_eq!(found[0].3, "the group `web.1` already exists at the start", "{found:#?}");
}

#[test]
fn written_controls_must_be_there_and_take_their_text() {
    let write = |keys: &str| with_task(&format!("workload = \"write-control\"\n{keys}"));
    let kind = "\"write-control\"";
    expect(
        &write("text = 1\n"),
        PHASE,
        12,
        kind,
        "workload write-control has no `control`",
        "add control = \"memory.reclaim\"",
    );
    expect(
        &write("control = \"vm.swappiness\"\n"),
        PHASE,
        12,
        kind,
        "workload write-control has no `text`",
        "add text = \"100M\"",
    );
    expect(
        &write("control = \"vm.swappiness\"\ntext = true\n"),
        PHASE + 2,
        8,
        "true",
        "expected an integer or a string, found a boolean",
        "write what you would echo into the file",
    );
    expect(
        &write("control = \"vm.swapiness\"\ntext = 1\n"),
        PHASE + 1,
        11,
        "\"vm.swapiness\"",
        "unknown sysctl `vm.swapiness`",
        "did you mean `vm.swappiness`?",
    );
    expect(
        &write("control = \"vm.swappiness\"\ntext = 300\n"),
        PHASE + 2,
        8,
        "300",
        "vm.swappiness refuses `300` (EINVAL)",
        "it takes 0 to 200",
    );
    expect(
        &write("control = \"vm.wmark_low_kbytes\"\ntext = 300\n"),
        PHASE + 1,
        11,
        "\"vm.wmark_low_kbytes\"",
        "vm.wmark_low_kbytes does not exist under this watermarks policy",
        "write [policy] watermarks = \"apart\"",
    );
    expect(
        &write("control = \"memory.reclaim\"\ntext = 300\n"),
        PHASE + 1,
        11,
        "\"memory.reclaim\"",
        "`memory.reclaim` is a control file of groups",
        "name the group: target = \"batch\", for example",
    );
    expect(
        &write("control = \"vm.swappiness\"\ntext = 3\ntarget = \"late\"\n"),
        PHASE + 3,
        10,
        "\"late\"",
        "`vm.swappiness` is a control file of the machine",
        "leave out `target`",
    );
    expect(
        &write("control = \"memory.relcaim\"\ntext = 3\ntarget = \"late\"\n"),
        PHASE + 1,
        11,
        "\"memory.relcaim\"",
        "unknown control file `memory.relcaim`",
        "did you mean `memory.reclaim`?",
    );
    expect(
        &write("control = \"memory.reclaim\"\ntext = \"100MB\"\ntarget = \"late\"\n"),
        PHASE + 2,
        8,
        "\"100MB\"",
        "memory.reclaim refuses `100MB` (EINVAL)",
        "it takes bytes like 300M, optionally followed by swappiness=N (0 to 200)",
    );
}

#[test]
fn groups_have_keys_of_their_own() {
    expect(
        "[[group]]\nname = \"g\"\nat_strat = false\n",
        3,
        1,
        "at_strat",
        "unknown key `at_strat`",
        "did you mean `at_start`?",
    );
    expect(
        "[[group]]\nname = \"g\"\nat_start = 0\n",
        3,
        12,
        "0",
        "expected true or false, found an integer",
        "",
    );
    expect(
        "[[group]]\nname = \"g\"\nmemory.reclaim = \"1M\"\n",
        3,
        8,
        "reclaim",
        "memory.reclaim cannot be written before anything runs",
        "let a task write it, with workload = \"write-control\"",
    );
    expect(
        "[[group]]\nname = \"g\"\nmemory.global_shrink_priority = 13\n",
        3,
        33,
        "13",
        "memory.global_shrink_priority refuses `13` (EINVAL)",
        "it takes -128 to 12",
    );
    let set = "[[group]]\nname = \"g\"\n[[variant]]\nname = \"v\"\nset.group.g.at_start = false\n";
    assert!(!sound(&format!("{SOUND}{set}")).variants[0].setup.groups[0].at_start);
}

#[test]
fn protection_must_fit_the_machine() {
    let group = |name: &str, keys: &str| format!("[[group]]\nname = \"{name}\"\n{keys}\n");
    let half = "memory.min = \"512M\"";
    let within =
        group("a", half) + &group("b", half) + &group("c", &format!("{half}\nparent = \"a\""));
    // Neither a nested group nor one that is created later counts.
    let later = group("d", &format!("{half}\nat_start = false"));
    let text = format!("{SOUND}{within}{later}");
    sound(&text);
    let hint = "protect less, or give the machine more memory";
    expect(
        &(group("a", half) + &group("b", "memory.min = \"513M\"")),
        6,
        14,
        "\"513M\"",
        "memory.min of the groups below the root adds up to 1025MiB, but the machine has 1GiB",
        hint,
    );
    expect(
        &group("a", "memory.min = \"max\""),
        3,
        14,
        "\"max\"",
        "memory.min of the groups below the root adds up to more than any machine has, but the machine has 1GiB",
        hint,
    );
    // A mistake that only a variant with a smaller machine has names the variant.
    let small = "[[variant]]\nname = \"v\"\n[[variant]]\nname = \"w\"\n\
        set.machine.memory = \"512MiB\"\n";
    let found = told(&format!("{text}{small}"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].3.ends_with("the machine has 512MiB (variant `w`)"), "{found:#?}");
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
    expect(
        "[policy]\nsoft_limit = \"two-passes\"\n",
        2,
        14,
        "\"two-passes\"",
        "unknown policy `two-passes`",
        "did you mean \"two-pass\"?",
    );
    expect(
        "[policy]\ngroup_walk = \"none\"\n",
        2,
        14,
        "\"none\"",
        "unknown policy `none`",
        "it is one of `whole` and `shared`",
    );
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
fn a_group_that_is_its_own_parent_is_reported() {
    let message = "the group `a` is its own ancestor";
    let hint = "remove `parent` from one of the groups in the cycle";
    let group =
        |name: &str, parent: &str| format!("[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\n");
    expect(&group("a", "a"), 3, 10, "\"a\"", message, hint);
    for circle in [
        group("a", "b") + &group("b", "a"),
        group("a", "b") + &group("b", "c") + &group("c", "a"),
        group("x", "a") + &group("a", "b") + &group("b", "c") + &group("c", "b"),
        group("x", "a") + &group("a", "a"),
    ] {
        let found = told(&format!("{SOUND}{circle}"));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].3.ends_with(" is its own ancestor"), "{found:#?}");
    }
}

#[test]
fn groups_without_a_memory_controller_have_no_files_of_memory() {
    let groups = "[[group]]\nname = \"pod\"\nsubtree_control = \"none\"\n\
        [[group]]\nname = \"in\"\nparent = \"pod\"\n[[group]]\nname = \"deep\"\nparent = \"in\"\n";
    let setup = sound(&format!("{SOUND}{groups}")).variants.remove(0).setup;
    let has: Vec<bool> = setup.groups.iter().map(|group| group.has_memory).collect();
    assert_eq!(has, [true, false, false]);
    assert_eq!(setup.payer(Some(2)), Some(0));
    assert_eq!(setup.payer(None), None);
    let message = |text: String| mistakes(&text)[0].message.clone();
    assert_eq!(
        message(format!("{SOUND}{groups}memory.max = \"8M\"\n")),
        "the group `deep` has no memory controller, so no memory.max"
    );
    let write = "[[task]]\nname = \"admin\"\nworkload = \"write-control\"\ntarget = \"in\"\n\
        control = \"memory.high\"\ntext = \"8M\"\n";
    assert_eq!(
        message(format!("{SOUND}{groups}{write}")),
        "the group `in` has no memory controller, so no memory.high"
    );
    let first = groups.replacen("[[group]]", "[[group]]\nmemory.swappiness = 3", 1);
    let message = message(format!("{SOUND}{first}"));
    assert_eq!(message, "cgroup version 1 has no `cgroup.subtree_control`");
}
