//! The parts of a scenario that a real kernel in QEMU cannot reproduce. They are printed above
//! every comparison. The guest adds what its kernel lacks or refuses.

use pagetide_core::config::{ControlOrigin, PolicyChoice};
use pagetide_core::control::GroupControl;
use pagetide_scenario::model::switches::{needed, NeededSwitch, Switch};
use pagetide_scenario::model::{PageSize, Setup, Task};
use pagetide_scenario::workload::{FileReadWorkload, FileWriteWorkload, Workload};

/// Maximum size of one read() or write() in the guest.
const BLOCK_MAX: u64 = 1 << 20;
/// About disks of which only the mean is known.
pub const DISK_SPEED_FIXED: &str = "disk speed: QEMU's disks run at host speed; each request in \
     Pagetide takes the mean time of a request in QEMU";
/// About disks whose latencies the guest has measured, in place of [`DISK_SPEED_FIXED`].
pub const DISK_SPEED_SPREAD: &str = "disk speed: QEMU's disks run at host speed; the requests in \
     Pagetide take the mean time of a request in QEMU, spread as single requests after the run";
/// Why a comparison is impossible, if it is. A released kernel cannot allocate kernel memory for a
/// program; the kernel with the proposals can (`gives_memory`).
pub fn impossible(setup: &Setup, gives_memory: bool) -> Option<String> {
    let page_size = setup.machine.page_size;
    if page_size != PageSize::default() {
        return Some(format!(
            "machine.page_size = {} KiB: the guest's kernel is for x86-64, with pages of 4 KiB; \
             compare with --set machine.page_size=4KiB",
            page_size.bytes() >> 10
        ));
    }
    if let Some(task) = setup.tasks.iter().find(|task| !task.resident.is_empty()) {
        return Some(format!(
            "task `{}` has resident memory: a kernel that has just booted has none",
            task.name
        ));
    }
    let watches = |task: &&Task| {
        !task.never_starts() && task.phases.iter().any(|it| it.workload.watcher().is_some())
    };
    if let Some(task) = setup.tasks.iter().find(watches) {
        return Some(format!(
            "task `{}` is a watcher, which only the simulator has; leave it out with `enabled = false`",
            task.name
        ));
    }
    if gives_memory {
        return None;
    }
    let phases = setup.tasks.iter().flat_map(|task| task.phases.iter().map(move |it| (task, it)));
    let asks = phases.into_iter().find(|(_, phase)| phase.workload.allocates_kernel_memory());
    asks.map(|(task, phase)| {
        let what = match &phase.workload {
            Workload::HighOrder(_) => "workload high-order",
            Workload::KernelMemory(_) => "workload kernel-memory",
            Workload::KernelObjects(_) => "workload kernel-objects",
            _ => "a build with stack_order, kernel_pages or a mix",
        };
        format!(
            "task `{}`, phase `{}`: {what} needs a kernel that gives memory on request: the kernel \
             of the proposals (`make proposals`, --kernel proposals)",
            task.name, phase.name
        )
    })
}

/// The first policy of the setup, with its file, that a kernel with these switches cannot select.
pub fn missing_switch(setup: &Setup, switches: &[String]) -> Option<(PolicyChoice, &'static str)> {
    let patched = needed(setup).filter(|needed| !needed.switch.always);
    let mut missing =
        patched.filter_map(|needed| Some((needed.choice, needed.switch.missing(switches)?)));
    missing.next()
}

/// The file of this kernel that selects variants of the policy, but not this variant.
fn variants_of_switch(choice: PolicyChoice, switches: &[String]) -> Option<&'static str> {
    let switch = Switch::of(choice.policy())?;
    let is_there = !switch.always && switch.missing(switches).is_none();
    is_there.then(|| switch.files[0])
}

/// One sentence for each part that exists only in the simulator. `switches`: the switches of the
/// kernel.
pub fn not_comparable(setup: &Setup, switches: &[String]) -> Vec<String> {
    let mut found = other_behaviour(setup, switches);
    found.extend(approximate(setup));
    found
}

/// The parts with which the kernel behaves otherwise, so that its counters say nothing about
/// Pagetide.
pub(crate) fn other_behaviour(setup: &Setup, switches: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let done: Vec<NeededSwitch> =
        needed(setup).filter(|needed| needed.switch.missing(switches).is_none()).collect();
    let is_done = |choice: &PolicyChoice| done.iter().any(|needed| needed.choice == *choice);
    let own = setup.policies.iter().filter(|choice| !setup.policies.is_linux(*choice));
    for choice in own.filter(|choice| !is_done(choice)) {
        let name = choice.policy().name();
        found.push(match variants_of_switch(choice, switches) {
            None => format!("policy {name} = {choice}: the kernel uses its own behaviour"),
            Some(file) => format!(
                "policy {name} = {choice}: {file} of the kernel has no such variant, and keeps its default"
            ),
        });
    }
    for (kind, name) in setup.plugins.iter() {
        found.push(format!("policy {kind} = {name}: the kernel uses its own behaviour"));
    }
    let machine = &setup.machine;
    for disk in &machine.disks {
        let faults = &disk.faults;
        if faults.read_error_ppm > 0 || faults.write_error_ppm > 0 || faults.slow_ppm > 0 {
            found.push(format!("disk `{}`: injected faults", disk.name));
        }
    }
    if machine.swap.iter().any(|swap| swap.full_after_pages.is_some()) {
        found.push("swap.full_after: the kernel's swap area has its full size".to_owned());
    }
    let mut below_0 = machine.swap_priorities();
    below_0.retain(|&priority| priority < 0);
    below_0.sort_unstable();
    if below_0.windows(2).any(|pair| pair[0] == pair[1]) {
        found.push("swap.priority: the kernel has no equal priorities below 0".to_owned());
    }
    let mut patched: Vec<GroupControl> = setup.group_controls().collect();
    let has = |control| done.iter().any(|needed| needed.switch.of_groups == Some(control));
    patched.retain(|&control| {
        matches!(control.file().since, ControlOrigin::Patch(_)) && !has(control)
    });
    patched.sort();
    patched.dedup();
    for control in patched {
        found.push(format!("{}: a patch that no kernel has", control.name()));
    }
    found
}

/// The parts that the kernel does about alike.
fn approximate(setup: &Setup) -> Vec<String> {
    let mut found = Vec::new();
    let machine = &setup.machine;
    if !setup.files.is_empty() || !machine.swap.is_empty() {
        found.push(DISK_SPEED_FIXED.to_owned());
    }
    if machine.nodes.iter().any(|node| node.reserved > 0) {
        found.push("machine.reserved: the kernel reserves what it needs".to_owned());
    }
    for file in setup.files.iter().filter(|file| file.metadata) {
        found.push(format!(
            "file `{}`: an ordinary file in the guest; its file systems have their own metadata, and no journal",
            file.name
        ));
    }
    if !machine.caches.is_empty() {
        found.push("machine.cache: the kernel has its own caches".to_owned());
    }
    let phases = || setup.tasks.iter().flat_map(|task| &task.phases);
    let mut long = phases().filter(|phase| match phase.workload {
        Workload::FileRead(FileReadWorkload { block, .. })
        | Workload::FileWrite(FileWriteWorkload { block, .. }) => block > BLOCK_MAX,
        _ => false,
    });
    if long.next().is_some() {
        found.push("calls of more than 1 MiB: split into calls of 1 MiB".to_owned());
    }
    if phases().any(|phase| matches!(phase.workload, Workload::Service(_))) {
        found.push(
            "latencies of a service: the guest runs on CPUs that the host lends it; CPU time of its \
             requests: spent by waiting for the clock"
                .to_owned(),
        );
    }
    let is_trace =
        |workload: &Workload| matches!(workload, Workload::Trace(_) | Workload::Build(_));
    if phases().any(|phase| is_trace(&phase.workload)) {
        found.push(
            "files of a trace: holes of their size, read without a disk; CPU time of its \
             instructions: spent by waiting for the clock"
                .to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_core::config::SoftLimitPolicy;

    fn setup(text: &str) -> Setup {
        let machine = "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"t\"\n";
        pagetide_testing::setup(&format!("{machine}{text}"))
    }

    #[test]
    fn what_only_a_patched_kernel_can_do_is_impossible_elsewhere() {
        let trace = "../../experiments/traces/cc1-zpipe.ptt";
        let build = format!("workload = \"build\"\nunits = 1\npath = \"{trace}\"\n");
        let touch = "workload = \"touch\"\nsize = \"1MiB\"\nadvice = \"huge\"\n";
        for possible in [touch, &build] {
            assert_eq!(impossible(&setup(possible), false), None);
        }
        for (keys, what) in [
            ("workload = \"high-order\"\nattempts = 1\n", "workload high-order"),
            ("workload = \"kernel-memory\"\nblocks = 1\ncount = 1\n", "workload kernel-memory"),
            (
                &format!("{build}stack_order = 2\n"),
                "a build with stack_order, kernel_pages or a mix",
            ),
            (
                &format!("{build}kernel_pages = 1\n"),
                "a build with stack_order, kernel_pages or a mix",
            ),
        ] {
            let why = "needs a kernel that gives memory on request: the kernel of the proposals \
                       (`make proposals`, --kernel proposals)";
            let said = format!("task `t`, phase `main`: {what} {why}");
            assert_eq!(impossible(&setup(keys), false), Some(said));
            assert_eq!(impossible(&setup(keys), true), None);
        }
    }

    #[test]
    fn pages_that_x86_64_does_not_have_are_impossible() {
        let touch = "workload = \"touch\"\nsize = \"1MiB\"\n";
        let mut setup = setup(touch);
        setup.machine.page_size = PageSize::Kib64;
        let why = impossible(&setup, true).unwrap();
        assert!(why.starts_with("machine.page_size = 64 KiB: the guest's kernel"), "{why}");
        assert!(why.ends_with("--set machine.page_size=4KiB"), "{why}");
    }

    #[test]
    fn policies_that_the_guest_sets_are_comparable() {
        let of = |policy: &str| {
            let touch = "workload = \"touch\"\nsize = \"1MiB\"\n";
            not_comparable(&setup(&format!("{touch}[policy]\n{policy}\n")), &[])
        };
        for same in [
            "thp = \"always\"",
            "thp_defrag = \"defer+madvise\"",
            "background_compaction = \"kcompactd-early\"",
            "compaction = \"linux-6.1\"",
            "compaction_capture = \"on\"",
        ] {
            assert_eq!(of(same), [""; 0], "{same}");
        }
        assert_eq!(
            of("compaction = \"linux-4.5\""),
            ["policy compaction = linux-4.5: the kernel uses its own behaviour"]
        );
    }

    #[test]
    fn what_a_kernel_has_a_switch_for_is_comparable() {
        let text = "workload = \"touch\"\nsize = \"1MiB\"\n[policy]\nshrink_priority = \"posted\"\n\
            soft_limit = \"two-pass\"\n[[group]]\nname = \"g\"\n\"memory.global_shrink_priority\" = 3\n";
        let setup = setup(text);
        let said = |switches: &[&str]| {
            let switches: Vec<String> = switches.iter().map(|&file| file.to_owned()).collect();
            (not_comparable(&setup, &switches), missing_switch(&setup, &switches))
        };
        let (limits, posted, file) = (
            "policy soft_limit = two-pass: the kernel uses its own behaviour",
            "policy shrink_priority = posted: the kernel uses its own behaviour",
            "memory.global_shrink_priority: a patch that no kernel has",
        );
        let soft_limit: PolicyChoice = SoftLimitPolicy::TwoPass.into();
        let missing = Some((soft_limit, "vm.soft_limit_reclaim"));
        let (found, first) = said(&[]);
        assert_eq!((found.len(), first), (3, missing));
        assert!([limits, posted, file].iter().all(|text| found.iter().any(|said| said == text)));
        assert_eq!(said(&["vm.global_shrink_priority"]), (vec![limits.to_owned()], missing));
        let all = ["vm.global_shrink_priority", "vm.soft_limit_reclaim"];
        assert_eq!(said(&all), (Vec::new(), None));
        let text =
            "workload = \"touch\"\nsize = \"1MiB\"\n[policy]\nshrink_priority = \"hierarchical\"\n";
        assert_eq!(
            not_comparable(&self::setup(text), &all.map(str::to_owned)),
            ["policy shrink_priority = hierarchical: vm.global_shrink_priority of the kernel has no such variant, \
              and keeps its default"]
        );
    }
}
