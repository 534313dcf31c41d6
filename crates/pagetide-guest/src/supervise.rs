//! The main sequence of a guest: prepare, fork the tasks, be saved, run, report, power off.

use crate::config::{self, GuestConfig};
use crate::counters::GuestCounters;
use crate::disk_probe;
use crate::groups::GuestGroups;
use crate::idle;
use crate::objects::{self, ShrinkFiles};
use crate::perform::Performer;
use crate::prepare;
use crate::report::{line, line_between, text_of, Reporter, SnapshotPoint};
use crate::shared::SharedWords;
use crate::sys::process::{self, ExitCause, ForkSide};
use crate::sys::{kernel_log, memory, port};
use pagetide_scenario::load::{load, Overrides, PluginNames};
use pagetide_scenario::model::{Scenario, Setup};
use pagetide_scenario::op::Op;
use pagetide_scenario::workload::Program;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum time for tasks to open their files.
const PATIENCE: Duration = Duration::from_secs(60);
/// The seed's name in the runner's store; 0 or no value means to wait.
const SEED: &str = "opt/pagetide/seed";
/// Polling interval of the store.
const SEED_EVERY: Duration = Duration::from_millis(10);
/// Texts sent when the machine is ready and at the end of the run.
const TEXTS: [&str; 9] = [
    "/proc/diskstats",
    "/proc/version",
    "/proc/zoneinfo",
    "/proc/meminfo",
    "/proc/buddyinfo",
    "/proc/pagetypeinfo",
    "/proc/slabinfo",
    "/proc/swaps",
    "/proc/sys/vm/min_free_kbytes",
];

/// Runs the guest. Returns only for failures before the ports are open.
pub fn run() -> ExitCode {
    if port::allow().is_err() {
        return ExitCode::FAILURE;
    }
    tell_of(supervise);
    port::power_off()
}

/// Performs the scenario of the working directory on a live machine, as an ordinary process with
/// children.
pub fn run_here() -> ExitCode {
    process::end_with_parent();
    tell_of(supervise_here);
    ExitCode::SUCCESS
}

fn tell_of(what: fn() -> Result<(), String>) {
    line(format_args!("@pagetide 1"));
    std::panic::set_hook(Box::new(|panic| line(format_args!("@fail {panic}"))));
    if let Err(problem) = what() {
        line(format_args!("@fail {problem}"));
    }
}

fn doing(what: &str) {
    line(format_args!("@doing {what}"));
}

fn read_config() -> Result<GuestConfig, String> {
    let text = std::fs::read_to_string(config::PATH)
        .map_err(|error| format!("{}: {error}", config::PATH))?;
    GuestConfig::parse(&text).map_err(|line| format!("{}: `{line}`", config::PATH))
}

fn read_scenario(config: &GuestConfig) -> Result<Scenario, String> {
    let overrides = Overrides {
        sets: config.sets.clone(),
        variants: vec![config.variant.clone()],
        added: config.added.clone(),
        plugins: PluginNames { any: true, ..PluginNames::default() },
        ..Overrides::default()
    };
    load(&config.scenario, &overrides).map_err(|errors| errors.to_string())
}

fn supervise() -> Result<(), String> {
    memory::keep_heap();
    doing("mounting /proc and /sys");
    prepare::file_systems()?;
    doing("reading the scenario");
    let config = read_config()?;
    let scenario = read_scenario(&config)?;
    let setup = &scenario.variants[0].setup;
    if let Some(line) = kernel_log::line_with("mem auto-init:") {
        text_of("auto-init", line.as_bytes());
    }
    doing("loading modules");
    prepare::modules(&config)?;
    doing("mounting disks");
    prepare::disks(setup)?;
    doing("setting knobs");
    prepare::sysctls(setup);
    objects::prepare(setup)?;
    doing("making groups");
    let groups = GuestGroups::prepare(setup)?;
    let counters = GuestCounters::open(setup).map_err(|error| error.to_string())?;
    for missing in &counters.missing {
        line(format_args!("@lacks {missing}"));
    }
    process::exempt_from_oom();
    let tasks = TaskProcesses::start(setup, &groups, &counters, true)?;
    let mut reporter =
        Reporter::new(tasks.shared, &counters, &groups).map_err(|error| error.to_string())?;
    memory::lock_all().map_err(|error| format!("mlockall: {error}"))?;
    tasks.wait_until_ready()?;
    let _held = prepare::lock_excess_memory(setup);
    doing("waiting for an idle kernel");
    if !idle::wait(setup.machine.cpus) {
        line(format_args!("@note the kernel was still busy with its own work when the run began"));
    }
    // Start with flushed CPU slabs.
    let caches = ShrinkFiles::open(setup);
    caches.flush_caches();

    TEXTS.iter().for_each(|path| reporter.file(path));
    line(format_args!("@ready"));
    let seed = wait_for_seed();
    let began = process::now_ns();
    tasks.run(&mut reporter, seed);
    let ran_ns = process::now_ns() - began;
    // Last, because it changes what it measures: the objects in use, without those of CPU slabs.
    if setup.has_objects() && caches.flush_caches() {
        reporter.snapshot(of_run("shrunk"), |_| {});
    }
    TEXTS.iter().for_each(|path| reporter.file(path));
    disk_probe::report(setup, ran_ns);
    setup.tasks.iter().enumerate().for_each(|(id, _)| report_programs(setup, id, seed));
    line(format_args!("@done"));
    Ok(())
}

/// The seed for a live machine.
const SEED_HERE: u64 = 1;

fn supervise_here() -> Result<(), String> {
    memory::keep_heap();
    doing("reading the scenario");
    let config = read_config()?;
    let scenario = read_scenario(&config)?;
    let setup = &scenario.variants[0].setup;
    doing("preparing files");
    prepare::files(setup)?;
    doing("making groups");
    let groups = match config.groups {
        Some(top) => GuestGroups::below(setup, top)?,
        None if setup.groups.is_empty() => GuestGroups::prepare(setup)?,
        None => return Err("the scenario has groups, but no parent group was given".to_owned()),
    };
    let counters = GuestCounters::of_live().map_err(|error| error.to_string())?;
    let tasks = TaskProcesses::start(setup, &groups, &counters, false)?;
    let mut reporter =
        Reporter::new(tasks.shared, &counters, &groups).map_err(|error| error.to_string())?;
    tasks.wait_until_ready()?;
    tasks.run(&mut reporter, SEED_HERE);
    setup.tasks.iter().enumerate().for_each(|(id, _)| report_programs(setup, id, SEED_HERE));
    line(format_args!("@done"));
    Ok(())
}

/// The occasion of a snapshot that belongs to no task.
fn of_run(kind: &str) -> SnapshotPoint<'_> {
    SnapshotPoint { kind, task: 0, phase: 0 }
}

struct TaskProcesses<'a> {
    setup: &'a Setup,
    shared: SharedWords,
    pids: Vec<i32>,
}

impl<'a> TaskProcesses<'a> {
    /// Forks them. `is_ours`: this is our own machine, so tasks must be able to lock their memory.
    fn start(
        setup: &'a Setup,
        groups: &GuestGroups<'_>,
        counters: &GuestCounters,
        is_ours: bool,
    ) -> Result<TaskProcesses<'a>, String> {
        doing("starting tasks");
        let shared = SharedWords::new(setup.tasks.len()).map_err(|error| error.to_string())?;
        let mut pids = Vec::new();
        for id in 0..setup.tasks.len() {
            match process::fork().map_err(|error| format!("fork: {error}"))? {
                ForkSide::Parent(pid) => pids.push(pid),
                ForkSide::Child => {
                    process::end_with_parent();
                    process::set_oom_score(setup.tasks[id].settings.oom_score_adj);
                    task_main(setup, id, groups, shared, counters, is_ours);
                }
            }
        }
        Ok(TaskProcesses { setup, shared, pids })
    }

    fn wait_until_ready(&self) -> Result<(), String> {
        match self.shared.wait_until_ready(self.pids.len() as u32, PATIENCE) {
            true => Ok(()),
            false => Err("the tasks did not become ready".to_owned()),
        }
    }

    /// Starts them, and reports; returns when all have ended.
    fn run(&self, reporter: &mut Reporter<'_>, seed: u64) {
        // Two snapshots in sequence show the activity of reporting and of the kernel alone.
        reporter.snapshot(of_run("idle-begin"), |_| {});
        std::thread::sleep(Duration::from_millis(100));
        reporter.snapshot(of_run("run-begin"), |_| {});
        process::alarm(Duration::from_nanos(self.setup.time_limit_ns));
        self.shared.start_tasks(seed);
        let in_time = wait_for_tasks(self.setup, &self.pids, self.shared, reporter);
        process::end_alarm();

        let console = self.shared.lock_console();
        // Skip ended tasks: the process id of a waited child may be reused.
        let lives = |(id, _): &(usize, &i32)| !self.shared.has_ended(*id);
        self.pids.iter().enumerate().filter(lives).for_each(|(_, &pid)| process::kill(pid));
        drop(console);
        // Their memory is not free until they are gone.
        while process::wait_any().is_some() {}
        if !in_time {
            line(format_args!("@note cut by the time limit"));
        }
        reporter.snapshot(of_run("run-end"), |_| {});
    }
}

/// The main function of a task's process.
fn task_main(
    setup: &Setup,
    id: usize,
    groups: &GuestGroups<'_>,
    shared: SharedWords,
    counters: &GuestCounters,
    is_ours: bool,
) -> ! {
    let prepare = || {
        let reporter =
            Reporter::new(shared, counters, groups).map_err(|error| error.to_string())?;
        let performer = Performer::new(setup, id, shared, reporter, groups)?;
        match memory::lock_all() {
            Err(error) if is_ours => return Err(format!("mlockall: {error}")),
            Ok(()) | Err(_) => {}
        }
        // Join last: pages are charged to the task's group at allocation, and this program's own
        // memory is not part of the scenario.
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

/// Limit of CPU time for generating a task's operations again.
const PROGRAM_LIMIT_NS: u64 = 2_000_000_000;

/// Generates the operations of a task again without performing them, and reports the time: this is
/// this program's part of a phase's CPU time, without the kernel. It stops after
/// [`PROGRAM_LIMIT_NS`], because a program that was cut by the time limit may be endless.
fn report_programs(setup: &Setup, id: usize, seed: u64) {
    if setup.tasks[id].background {
        return; // it may be endless
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
            // The operations of a service depend on its timing.
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

/// Waits for all tasks that are not in the background, and stops tasks that run until another one
/// ends. Returns false if the time limit came first.
fn wait_for_tasks(
    setup: &Setup,
    pids: &[i32],
    shared: SharedWords,
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
                // Hold the console, so that no report is cut.
                let console = shared.lock_console();
                process::kill(pids[other]);
                drop(console);
                is_stopped[other] = true;
                let stopped = SnapshotPoint { kind: "task-stop", task: other, phase: 0 };
                reporter.snapshot(stopped, |_| {});
            }
        }
        match ended {
            ExitCause::Exited(0) => {}
            ExitCause::Killed(_) if is_stopped[id] => {}
            ExitCause::Exited(code) => {
                line_between(shared, format_args!("@ended {id} exit {code}"))
            }
            ExitCause::Killed(signal) => {
                line_between(shared, format_args!("@ended {id} signal {signal}"));
            }
        }
        if !setup.tasks[id].background {
            left -= 1;
        }
    }
    true
}
