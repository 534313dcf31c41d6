//! Blocks of kernel memory, and tasks that end with others: memory is allocated as requested, and
//! all of it is freed.

use pagetide_scenario::model::Setup;
use pagetide_scenario::record::{RunRecord, Unit};
use pagetide_sim::run::build;
use pagetide_sim::world::SimWorld;
use pagetide_testing::{run_text, setup, value};

fn record(text: &str) -> RunRecord {
    run_text(text, 1000)
}

/// A world after its run.
fn ended(text: &str) -> (Setup, SimWorld) {
    let setup = setup(text);
    let mut world = build(&setup, 1).unwrap();
    assert!(world.run(setup.time_limit_ns, 1000, |_| false).unwrap());
    (setup, world)
}

/// Pages on the free lists and the per-CPU lists.
fn free_pages(world: &SimWorld) -> u64 {
    let zones = || world.machine.mem.nodes.iter().flat_map(|node| node.populated_zones());
    zones().map(|zone| zone.free_pages() + zone.pcp_pages()).sum()
}

/// An empty machine of 64 MiB: its zones are free except for the kernel's reserve.
const MACHINE: &str = "[machine]\nmemory = \"64MiB\"\n";

fn task(name: &str, keys: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\n{keys}\n")
}

#[test]
fn held_blocks_run_out_and_freed_ones_do_not() {
    // 64 MiB in blocks of 2 MiB are 32, and some memory is not free.
    let of = |hold: bool| {
        let keys = format!(
            "workload = \"high-order\"\nattempts = 64\nhold = {hold}\nrequest = \"nowait\""
        );
        record(&(MACHINE.to_owned() + &task("t", &keys)))
    };
    let held = of(true);
    assert_eq!(value(&held, "t.attempts"), 64.0);
    let success = value(&held, "t.success");
    assert!((30.0..50.0).contains(&success), "{success} %");
    assert_eq!(success, success.floor());
    assert_eq!(held.metrics["t.success"].unit, Unit::Percent);
    assert_eq!(value(&held, "t.main.success"), success);
    let freed = of(false);
    assert_eq!((value(&freed, "t.success"), value(&freed, "t.attempts")), (100.0, 64.0));
}

#[test]
fn attempts_are_counted_by_phase_and_begin_in_their_interval() {
    let phase = |name: &str, keys: &str| {
        format!("[[task.phase]]\nname = \"{name}\"\nworkload = \"high-order\"\n{keys}\n")
    };
    let all = phase("all", "percent = 100");
    let few = phase("few", "attempts = 8\nhold = false\ninterval = \"10ms\"");
    let record = record(&(MACHINE.to_owned() + "[[task]]\nname = \"t\"\n" + &all + &few));
    assert_eq!(value(&record, "t.attempts"), 40.0);
    let (all, few) = (value(&record, "t.all.success"), value(&record, "t.few.success"));
    assert!((50.0..100.0).contains(&all), "{all} %");
    assert_eq!(few, 100.0, "the blocks of the first phase are free again");
    let got = (all * 32.0 / 100.0).ceil() + 8.0;
    assert_eq!(value(&record, "t.success"), (got * 100.0 / 40.0).floor());
    let walltime = value(&record, "t.few.walltime");
    assert!((0.070..0.071).contains(&walltime), "{walltime} s for 7 intervals of 10 ms");
}

#[test]
fn failed_attempts_have_a_latency_too() {
    let keys = "workload = \"high-order\"\nattempts = 50\norder = 10\nrequest = \"nowait\"";
    let (_, world) = ended(&(MACHINE.to_owned() + &task("t", keys)));
    assert_eq!(world.tasks[0].alloc_latency.count(), 50);
    assert!(world.tasks[0].usage.blocks_got < 50);
}

#[test]
fn kernel_memory_holds_what_it_says_and_gives_all_back() {
    let other = task("z", "workload = \"sleep\"\nduration = \"1s\"");
    let before = ended(&(MACHINE.to_owned() + &other)).1;
    for request in ["kernel", "atomic", "nowait", "reclaimable"] {
        let memory = |rest: &str| {
            format!(
                "workload = \"kernel-memory\"\norder = 2\nblocks = 300\ninterval = \"1us\"\n\
                request = \"{request}\"\n{rest}"
            )
        };
        let text = MACHINE.to_owned() + &task("k", &memory("count = 5000")) + &other;
        let (_, world) = ended(&text);
        let usage = &world.tasks[0].usage;
        assert_eq!((usage.blocks_asked, usage.blocks_got), (5000, 5000));
        assert_eq!(world.machine.kernel_blocks(world.tasks[0].mm), []);
        assert_eq!(free_pages(&world), free_pages(&before), "{request}");
        // If the run stops in the middle, the task holds its maximum of blocks.
        let endless = MACHINE.to_owned() + &task("k", &memory("background = true")) + &other;
        let (_, world) = ended(&endless);
        assert_eq!(world.machine.kernel_blocks(world.tasks[0].mm).len(), 300);
        assert_eq!(free_pages(&world) + 1200, free_pages(&before), "{request}");
    }
}

#[test]
fn kernel_memory_without_a_pause_lets_others_run() {
    let memory = "background = true\nworkload = \"kernel-memory\"\nblocks = 10";
    let other = task("z", "workload = \"compute\"\nduration = \"10ms\"");
    let record = record(&(MACHINE.to_owned() + &task("k", memory) + &other));
    assert!(value(&record, "z.walltime") < 0.03, "{}", value(&record, "z.walltime"));
    assert!(value(&record, "k.attempts") > 1000.0);
}

#[test]
fn a_build_s_kernel_memory_is_gone_with_its_units() {
    let trace = "../../experiments/traces/cc1-zpipe.ptt";
    let of = |keys: &str| {
        let keys = format!("workload = \"build\"\npath = \"{trace}\"\nunits = 2\n{keys}");
        ended(&("[machine]\nmemory = \"256MiB\"\n".to_owned() + &task("make", &keys))).1
    };
    let (plain, stacks) = (of(""), of("stack_order = 2\nkernel_pages = 30"));
    assert_eq!(plain.tasks[0].usage.blocks_asked, 0);
    assert_eq!(stacks.tasks[0].usage.blocks_got, 2 * 31);
    assert_eq!(free_pages(&stacks), free_pages(&plain));
}

#[test]
fn a_task_ends_with_the_one_it_runs_until() {
    let work = task("work", "workload = \"sleep\"\nduration = \"50ms\"");
    let last = task("last", "after = \"churn\"\nworkload = \"sleep\"\nduration = \"20ms\"");
    let churn = task(
        "churn",
        "until = \"work\"\nworkload = \"kernel-memory\"\nblocks = 10\n\
        interval = \"10us\"",
    );
    let chain = task("chain", "until = \"churn\"\nworkload = \"sleep\"\nduration = \"9s\"");
    // Stopped before its start; a task that waits for it starts then.
    let never =
        task("never", "start = \"1s\"\nuntil = \"work\"\nworkload = \"sleep\"\nduration = \"1s\"");
    let late = task("late", "after = \"never\"\nworkload = \"sleep\"\nduration = \"1ms\"");
    let record = record(&[MACHINE, &work, &last, &churn, &chain, &never, &late].concat());
    for (name, from, to) in [
        ("work.walltime", 0.05, 0.051),
        ("churn.walltime", 0.045, 0.056),
        ("chain.walltime", 0.045, 0.056),
        ("last.walltime", 0.02, 0.021),
        ("late.walltime", 0.001, 0.002),
        ("elapsed", 0.07, 0.085),
    ] {
        let value = value(&record, name);
        assert!((from..to).contains(&value), "{name}: {value}");
    }
    assert!(!record.metrics.contains_key("never.walltime"));
    assert_eq!(record.notes, [""; 0], "no task ran out of memory");
    assert!(value(&record, "churn.main.success") == 100.0, "its phase is reported");
}

#[test]
fn a_task_is_stopped_in_the_middle_of_anything() {
    let keys = "until = \"work\"\nworkload = ";
    let swapper = task("swap", &format!("{keys}\"touch\"\nsize = \"100MiB\"\npasses = 1000"));
    let writer = task("write", &format!("{keys}\"file-write\"\nfile = \"log\""));
    let direct = task(
        "direct",
        &format!("{keys}\"high-order\"\nattempts = 1000000\ninterval = \"1ms\"\nhold = false"),
    );
    for ms in [3, 20, 150, 700] {
        let work = task("work", &format!("workload = \"sleep\"\nduration = \"{ms}ms\""));
        let machine = "[machine]\nmemory = \"64MiB\"\ncpus = 2\nswap = \"256MiB\"\n\
            [[file]]\nname = \"log\"\n";
        let text = [machine, &work, &swapper, &writer, &direct].concat();
        let (first, again) = (record(&text), record(&text));
        assert_eq!((first.digest, &first.metrics), (again.digest, &again.metrics));
        let elapsed = value(&first, "elapsed");
        // A waking task may wait for a tick of 4 ms, and so may a task that must stop.
        assert!(elapsed < f64::from(ms) / 1000.0 + 0.009, "{elapsed} s after {ms} ms");
    }
}

#[test]
fn the_machine_s_cpu_time_is_everybody_s() {
    let compute = |name: &str| task(name, "workload = \"compute\"\nduration = \"30ms\"");
    let record = record(&[MACHINE, &compute("a"), &compute("b")].concat());
    assert_eq!(value(&record, "user"), 0.06);
    let system = value(&record, "system");
    assert!(system > 0.0 && system < 0.001, "{system}");
    assert_eq!(record.metrics["user"].unit, Unit::Seconds);
    let swapper = task("t", "workload = \"touch\"\nsize = \"100MiB\"\npasses = 2");
    let text = format!("{MACHINE}swap = \"256MiB\"\n{swapper}");
    let record = self::record(&text);
    assert!(value(&record, "system") > value(&record, "t.system"), "kswapd works, too");
    let both = value(&record, "user") + value(&record, "system");
    assert!(both <= value(&record, "elapsed"), "there is one CPU");
}

/// Runs a task with these phases, followed by a sleep, for a second.
fn after_phases(machine: &str, phases: &[(&str, &str)]) -> (SimWorld, RunRecord) {
    let phase =
        |(name, keys): &(&str, &str)| format!("[[task.phase]]\nname = \"{name}\"\n{keys}\n");
    let phases: String = phases.iter().map(phase).collect();
    let sleep = "workload = \"sleep\"\nduration = \"1s\"";
    let text = format!(
        "[machine]\nmemory = \"64MiB\"\n{machine}[[file]]\nname = \"data\"\nsize = \"16MiB\"\n\
        sparse = true\n[[task]]\nname = \"t\"\nuntil = \"z\"\n{phases}[[task.phase]]\n\
        name = \"rest\"\nworkload = \"sleep\"\nduration = \"9s\"\n{}",
        task("z", sleep)
    );
    // The task frees its memory when the other task ends, which is after the time limit.
    let mut setup = setup(&text);
    setup.time_limit_ns = 900_000_000;
    let mut world = build(&setup, 1).unwrap();
    assert!(!world.run(setup.time_limit_ns, 1000, |_| false).unwrap());
    (world, record(&text))
}

/// Free blocks of order 0.
fn single_pages(world: &SimWorld) -> u64 {
    let text = world.machine.proc_buddyinfo();
    let first = |line: &str| line.split_whitespace().nth(4).unwrap().parse::<u64>().unwrap();
    text.lines().map(first).sum()
}

#[test]
fn interleaved_pages_alternate_in_memory() {
    let mix = "workload = \"interleave\"\npages = 2048\nfile = \"data\"";
    let (mut world, record) = after_phases("", &[("mix", mix)]);
    assert_eq!(value(&record, "t.mix.nr_mapped"), 0.0);
    assert_eq!(value(&record, "t.mix.nr_file_pages"), 2048.0, "no file page is read along");
    assert_eq!(value(&record, "t.mix.nr_anon_pages"), 2048.0);
    let before = single_pages(&world);
    world.machine.write_control("vm.drop_caches", "1").unwrap().discard();
    let dropped = single_pages(&world) - before;
    assert!((1900..=2048).contains(&dropped), "{dropped} of 2048 file pages stood alone");
}

#[test]
fn discarded_pages_are_free() {
    let fill = "workload = \"touch\"\nsize = \"2048p\"";
    let discard = "workload = \"discard\"\nfirst = 1\nevery = 2";
    let again = "workload = \"touch\"\nsize = \"2048p\"\nwrite = false";
    let of = |phases: &[(&str, &str)]| after_phases("", phases);
    let (filled, _) = of(&[("fill", fill)]);
    let (world, record) = of(&[("fill", fill), ("discard", discard)]);
    assert_eq!(value(&record, "t.discard.nr_anon_pages"), 1024.0);
    let holes = single_pages(&world) - single_pages(&filled);
    assert!(
        (700..=1024).contains(&holes),
        "{holes} of 1024 pages stood alone outside the sets of the CPU"
    );
    let (_, record) = of(&[("fill", fill), ("discard", discard), ("again", again)]);
    assert_eq!(value(&record, "t.again.pgfault"), 1024.0);
    let whole = "workload = \"discard\"";
    let (_, record) = of(&[("fill", fill), ("discard", whole)]);
    assert_eq!(value(&record, "t.discard.nr_anon_pages"), 0.0);
}

#[test]
fn advice_decides_which_regions_have_huge_pages() {
    let of = |thp: &str, advice: &str| {
        let machine = format!("[policy]\nthp = \"{thp}\"\n");
        let touch = format!("workload = \"touch\"\nsize = \"8MiB\"\nadvice = \"{advice}\"");
        value(&after_phases(&machine, &[("fill", &touch)]).1, "t.fill.thp_fault_alloc")
    };
    assert_eq!((of("never", "huge"), of("madvise", "normal")), (0.0, 0.0));
    assert_eq!((of("madvise", "huge"), of("always", "normal")), (4.0, 4.0));
    assert_eq!(of("always", "no-huge"), 0.0);
}
