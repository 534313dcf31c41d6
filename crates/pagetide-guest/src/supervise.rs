//! The life of a guest: prepare, fork the tasks, be saved, run, report, power off.

use crate::config::{self, Config};
use crate::counters::Counters;
use crate::groups::Groups;
use crate::objects::{self, Caches};
use crate::perform::Performer;
use crate::prepare;
use crate::report::{line, line_between, Moment, Reporter};
use crate::shared::Shared;
use crate::sys::process::{self, Ended, Forked};
use crate::sys::{memory, port};
use pagetide_scenario::load::{load, Overrides, PluginNames};
use pagetide_scenario::model::Setup;
use pagetide_scenario::op::Op;
use pagetide_scenario::workload::Program;
use std::process::ExitCode;
use std::time::Duration;

/// How long the tasks may take to open their files.
const PATIENCE: Duration = Duration::from_secs(60);
/// The runner's store has the seed under this name; 0 or nothing means to wait.
const SEED: &str = "opt/pagetide/seed";
/// How often the store is asked.
const SEED_EVERY: Duration = Duration::from_millis(10);
/// Texts sent when the machine is ready and when the run is over.
const TEXTS: [&str; 8] = [
    "/proc/diskstats",
    "/proc/version",
    "/proc/zoneinfo",
    "/proc/meminfo",
    "/proc/buddyinfo",
    "/proc/pagetypeinfo",
    "/proc/swaps",
    "/proc/sys/vm/min_free_kbytes",
];

/// Runs the guest; does not return but for failures before the ports are open.
pub fn run() -> ExitCode {
    if port::allow().is_err() {
        return ExitCode::FAILURE;
    }
    line(format_args!("@pagetide 1"));
    std::panic::set_hook(Box::new(|panic| line(format_args!("@fail {panic}"))));
    if let Err(problem) = supervise() {
        line(format_args!("@fail {problem}"));
    }
    port::power_off()
}

fn doing(what: &str) {
    line(format_args!("@doing {what}"));
}

fn supervise() -> Result<(), String> {
    memory::keep_heap();
    doing("mounting /proc and /sys");
    prepare::file_systems()?;
    doing("reading the scenario");
    let text = std::fs::read_to_string(config::PATH)
        .map_err(|error| format!("{}: {error}", config::PATH))?;
    let config = Config::parse(&text).map_err(|line| format!("{}: `{line}`", config::PATH))?;
    let overrides = Overrides {
        sets: config.sets.clone(),
        variants: vec![config.variant.clone()],
        added: config.added.clone(),
        plugins: PluginNames { any: true, ..PluginNames::default() },
        ..Overrides::default()
    };
    let scenario = load(&config.scenario, &overrides).map_err(|errors| errors.to_string())?;
    let setup = &scenario.variants[0].setup;
    doing("loading modules");
    prepare::modules(&config)?;
    doing("mounting disks");
    prepare::disks(setup)?;
    doing("setting knobs");
    prepare::sysctls(setup);
    objects::prepare(setup)?;
    doing("making groups");
    let groups = Groups::prepare(setup)?;
    let counters = Counters::open(setup.machine.cpus, setup.has_objects())
        .map_err(|error| error.to_string())?;
    for missing in &counters.missing {
        line(format_args!("@lacks {missing}"));
    }
    let shared = Shared::new(setup.tasks.len()).map_err(|error| error.to_string())?;

    doing("starting tasks");
    process::spare_from_oom();
    let mut pids = Vec::new();
    for id in 0..setup.tasks.len() {
        match process::fork().map_err(|error| format!("fork: {error}"))? {
            Forked::Parent(pid) => pids.push(pid),
            Forked::Child => {
                process::offer_to_oom(setup.tasks[id].oom_score_adj);
                live(setup, id, &groups, shared, &counters);
            }
        }
    }
    let reporter = Reporter::new(shared, &counters, &groups);
    let mut reporter = reporter.map_err(|error| error.to_string())?;
    memory::lock_all().map_err(|error| format!("mlockall: {error}"))?;
    if !shared.wait_until_ready(setup.tasks.len() as u32, PATIENCE) {
        return Err("the tasks did not become ready".to_owned());
    }
    let _held = prepare::hold(setup);
    // Caches begin without slabs that CPUs keep at hand.
    let caches = Caches::open(setup);
    caches.settle();

    TEXTS.iter().for_each(|path| reporter.file(path));
    line(format_args!("@ready"));
    let seed = wait_for_seed();

    // Twice, with nothing between: what reporting and the kernel alone do.
    let begin = |kind| Moment { kind, task: 0, phase: 0 };
    reporter.snapshot(begin("idle-begin"), |_| {});
    std::thread::sleep(Duration::from_millis(100));
    reporter.snapshot(begin("run-begin"), |_| {});
    process::alarm(Duration::from_nanos(setup.time_limit_ns));
    shared.go(seed);
    let in_time = wait_for_tasks(setup, &pids, shared, &mut reporter);
    process::end_alarm();

    let console = shared.lock_console();
    pids.iter().copied().for_each(process::kill);
    drop(console);
    // Their memory is theirs until they are gone.
    while process::wait_any().is_some() {}
    if !in_time {
        line(format_args!("@note cut by the time limit"));
    }
    reporter.snapshot(begin("run-end"), |_| {});
    // Last, as it changes what it looks at: which objects are in use, and not merely at hand.
    if caches.settle() {
        reporter.snapshot(begin("shrunk"), |_| {});
    }
    TEXTS.iter().for_each(|path| reporter.file(path));
    setup.tasks.iter().enumerate().for_each(|(id, _)| report_programs(setup, id, seed));
    line(format_args!("@done"));
    Ok(())
}

/// The life of a task's process.
fn live(setup: &Setup, id: usize, groups: &Groups<'_>, shared: Shared, counters: &Counters) -> ! {
    let prepare = || {
        let reporter =
            Reporter::new(shared, counters, groups).map_err(|error| error.to_string())?;
        let performer = Performer::new(setup, id, shared, reporter, groups)?;
        memory::lock_all().map_err(|error| format!("mlockall: {error}"))?;
        // Last: pages are charged to the group that a task is in when it gets them, and what this
        // program needs for itself is not the scenario's.
        if let Some(group) = setup.tasks[id].group {
            groups.join(Some(group)).map_err(|error| format!("joining its group: {error}"))?;
        }
        Ok::<_, String>(performer)
    };
    let prepared = prepare();
    let mut performer = match prepared {
        Ok(performer) => performer,
        Err(problem) => {
            line(format_args!("@fail task `{}`: {problem}", setup.tasks[id].name));
            port::power_off()
        }
    };
    shared.task_is_ready();
    performer.run(shared.wait_for_seed());
    process::exit_now(0)
}

/// CPU time that a task's operations may take to be made once more.
const PROGRAM_LIMIT_NS: u64 = 2_000_000_000;

/// Makes the operations of a task once more, without performing them, and reports how long that takes: this
/// program's own part of a phase's CPU time, which the kernel has nothing to do with. It is cut after
/// [`PROGRAM_LIMIT_NS`]: what a time limit has cut may have no end.
fn report_programs(setup: &Setup, id: usize, seed: u64) {
    if setup.tasks[id].background {
        return; // it may have no end
    }
    let Ok(mut program) = Program::new(setup, id, seed) else { return };
    let start = process::cpu_ns();
    let (mut began, mut ops) = (start, 0u64);
    loop {
        match program.next_op() {
            Ok(Some(Op::PhaseBegin { .. })) => (began, ops) = (process::cpu_ns(), 0),
            Ok(Some(Op::PhaseEnd { phase })) => {
                let ns = process::cpu_ns().saturating_sub(began);
                line(format_args!("@program {id} {phase} {ns} {ops}"));
            }
            // What a service does depends on when it does it.
            Ok(Some(Op::Serve { .. }) | None) | Err(_) => return,
            Ok(Some(op)) => {
                std::hint::black_box(op);
                ops += 1;
                let looks = ops.is_multiple_of(1 << 16);
                if looks && process::cpu_ns().saturating_sub(start) > PROGRAM_LIMIT_NS {
                    return;
                }
            }
        }
    }
}

fn wait_for_seed() -> u64 {
    // `seed ` and 20 digits.
    let mut buffer = [0; 32];
    loop {
        let seed = port::store(SEED, &mut buffer)
            .and_then(|text| std::str::from_utf8(text).ok())
            .and_then(|text| text.trim().strip_prefix("seed ")?.parse().ok());
        if let Some(seed) = seed {
            return seed;
        }
        std::thread::sleep(SEED_EVERY);
    }
}

/// Waits for all tasks that are not in the background, and stops those that run until another has
/// ended; false when the time limit came first.
fn wait_for_tasks(
    setup: &Setup,
    pids: &[i32],
    shared: Shared,
    reporter: &mut Reporter<'_>,
) -> bool {
    let mut is_over = vec![false; pids.len()];
    let mut is_stopped = vec![false; pids.len()];
    let mut left = setup.tasks.iter().filter(|task| !task.background).count();
    while left > 0 {
        let Some((pid, ended)) = process::wait_any() else { return false };
        let Some(id) = pids.iter().position(|&known| known == pid) else { continue };
        shared.task_has_ended(id);
        is_over[id] = true;
        for (other, task) in setup.tasks.iter().enumerate() {
            if task.until == Some(id) && !is_over[other] {
                // Not in the middle of a report.
                let console = shared.lock_console();
                process::kill(pids[other]);
                drop(console);
                is_stopped[other] = true;
                let stopped = Moment { kind: "task-stop", task: other, phase: 0 };
                reporter.snapshot(stopped, |_| {});
            }
        }
        match ended {
            Ended::Exited(0) => {}
            Ended::Killed(_) if is_stopped[id] => {}
            Ended::Exited(code) => line_between(shared, format_args!("@ended {id} exit {code}")),
            Ended::Killed(signal) => {
                line_between(shared, format_args!("@ended {id} signal {signal}"));
            }
        }
        if !setup.tasks[id].background {
            left -= 1;
        }
    }
    true
}
