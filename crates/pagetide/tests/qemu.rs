//! `pagetide verify` with a real kernel in QEMU: its comparison, its failures, and its cleanup.
//!
//! Every test is skipped, with the reason on stderr, if QEMU, mkfs.ext4, a kernel or the static
//! guest is missing. `make test-qemu` provides all of them.

use pagetide_linux::kernel::KernelImage;
use pagetide_testing::command::CommandOutput;
use pagetide_testing::directory::{built_programs, TestDir};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An anonymous and a file phase, both larger than the free memory.
const MIXED: &str = r#"
repeats = 1

[machine]
memory = "128MiB"
swap = "256MiB"

[[file]]
name = "data"
size = "64MiB"

[[task]]
name = "t"

[[task.phase]]
name = "anon"
workload = "touch"
size = "96MiB"
passes = 2

[[task.phase]]
name = "file"
workload = "mapped-read"
file = "data"
advice = "random"
"#;

/// A task that ends at once.
const TINY: &str = r#"
repeats = 1

[machine]
memory = "128MiB"

[[task]]
name = "t"
workload = "touch"
size = "1MiB"
"#;

/// The first missing requirement.
fn missing() -> Option<String> {
    let runs = |program: &str, version: &str| {
        Command::new(program)
            .arg(version)
            .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if !runs("qemu-system-x86_64", "--version") {
        return Some("there is no qemu-system-x86_64".to_owned());
    }
    if !runs("mkfs.ext4", "-V") {
        return Some("there is no mkfs.ext4".to_owned());
    }
    if let Err(error) = KernelImage::find() {
        return Some(error.to_string());
    }
    let guest = built_programs().join("../guest/pagetide-guest");
    (!guest.is_file()).then(|| format!("{} is not built: `make guest`", guest.display()))
}

/// A directory with a scenario `s.toml` and a separate directory for temporary files.
struct Bench {
    place: TestDir,
    tmp: PathBuf,
}

impl Bench {
    /// `None` if this test must be skipped; prints the reason.
    fn new(scenario: &str) -> Option<Bench> {
        if let Some(reason) = missing() {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            eprintln!("{test}: skipped, {reason}");
            return None;
        }
        let place = TestDir::with("s.toml", scenario);
        // A comma separates options of QEMU, and the path is too long for a socket's address.
        let tmp = place.path(format!("tmp, {}", "long".repeat(25)));
        fs::create_dir(&tmp).unwrap();
        Some(Bench { place, tmp })
    }

    fn command(&self, more: &str) -> Command {
        let mut command = self.place.command(&format!("verify s.toml {more}"));
        command.env("TMPDIR", &self.tmp);
        command
    }

    fn verify(&self, more: &str) -> CommandOutput {
        ran(self, self.command(more).spawn().unwrap())
    }

    /// Processes with a working directory below ours, such as QEMU.
    fn processes(&self) -> Vec<PathBuf> {
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes
            .filter(|path| {
                fs::read_link(path.join("cwd")).is_ok_and(|dir| dir.starts_with(&self.tmp))
            })
            .collect()
    }
}

/// Waits for the end, then checks that nothing is left.
#[track_caller]
fn ran(bench: &Bench, child: Child) -> CommandOutput {
    let output = child.wait_with_output().unwrap();
    let left: Vec<_> = fs::read_dir(&bench.tmp).unwrap().flatten().map(|e| e.path()).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "files left behind");
    assert_eq!(bench.processes(), Vec::<PathBuf>::new(), "processes left behind");
    output.into()
}

#[track_caller]
fn json(ran: CommandOutput) -> Value {
    ran.quietly().json()
}

/// Linux's mean of a metric of the first variant.
#[track_caller]
fn linux(document: &Value, key: &str) -> f64 {
    document["variants"][0]["metrics"][key]["linux"]["mean"].as_f64().unwrap_or_else(|| {
        panic!("Linux has no {key}");
    })
}

/// All texts of a list, one on each line.
fn lines(list: &Value) -> String {
    let texts = list.as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn both_worlds_are_compared_and_a_recording_stands_for_qemu() {
    let Some(bench) = Bench::new(MIXED) else { return };
    let texts = ["kernel     Linux ", "t.anon\n", "t.file\n", " pswpout ", "stable counters"];
    let table = &bench.verify("--record kept").quietly().prints(&texts).stdout;
    let kept = fs::read_dir(bench.place.path("kept")).unwrap().flatten();
    let mut kept: Vec<_> = kept.map(|file| file.file_name().into_string().unwrap()).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["fitted-costs.1cpu.json", "machine-costs.1cpu.json", "s.default.json"]);

    let nowhere = bench.place.path("kept").into_os_string();
    let recorded = bench.command("--reference kept").env("PATH", &nowhere).spawn().unwrap();
    assert_eq!(ran(&bench, recorded).quietly().stdout, *table);
    let recorded = json(bench.verify("--reference kept --format json"));
    let (faults, stolen) =
        (linux(&recorded, "t.file.pgmajfault"), linux(&recorded, "t.file.pgsteal_total"));
    assert!((16_000.0..17_000.0).contains(&faults), "64 MiB, page by page: {faults}");
    assert!((1000.0..40_000.0).contains(&stolen), "{stolen}");
    bench.verify("--reference elsewhere").fails(2, &["no such reference", "--record DIR"]);
}

#[test]
fn runs_of_several_boots_are_compared_together() {
    let Some(bench) = Bench::new(MIXED) else { return };
    let document = json(bench.verify("--boots 2 --repeats 3 --costs sourced --format json"));
    assert!(lines(&document["notes"]).contains("runs of 2 boots"), "{document}");
    assert_eq!(document["variants"][0]["linux_runs"], 3);
}

#[test]
fn what_the_kernel_cannot_be_asked_is_listed() {
    let more = r#"
[sysctl]
"vm.extra_free_kbytes" = 2000
"vm.swappiness" = 10

[policy]
kswapd = "linux-2.6.37"
direct_reclaim = "linux-6.1"
"#;
    let Some(bench) = Bench::new(&format!("{TINY}{more}")) else { return };
    let document = json(bench.verify("--format json"));
    let listed = lines(&document["not_comparable"]);
    for text in ["the kernel lacks vm.extra_free_kbytes", "policy kswapd = linux-2.6.37"] {
        assert!(listed.contains(text), "{text:?} is not in:\n{listed}");
    }
    assert!(!listed.contains("swappiness") && !listed.contains("direct_reclaim"), "{listed}");
}

#[test]
fn without_a_kernel_that_has_the_proposals_it_says_how_to_get_one() {
    let Some(bench) = Bench::new(TINY) else { return };
    let mut command = bench.command("--kernel proposals");
    command.env("XDG_CACHE_HOME", bench.place.path("empty"));
    let ran = ran(&bench, command.spawn().unwrap());
    ran.fails(2, &["no kernel with the proposals", "make proposals"]);
}

#[test]
fn a_guest_that_takes_too_long_is_ended() {
    let Some(bench) = Bench::new(TINY) else { return };
    let ran = bench.verify("--timeout 1 --keep kept");
    ran.fails(1, &["did not finish within 1 s while ", "console", "--keep DIR"]);
    assert!(bench.place.path("kept/s.default.boot.console").is_file());
    // The time limit accepts any number.
    let line = format!("--timeout {} --kernel no/vmlinuz-1", u64::MAX);
    bench.verify(&line).fails(2, &["no/vmlinuz-1"]);
}

/// A program of three instructions: exit(7).
fn exits_at_once() -> Vec<u8> {
    let code = b"\xb8\x3c\0\0\0\xbf\x07\0\0\0\x0f\x05";
    let begin = 0x40_0000u64;
    let entry = begin + 120;
    let len = (120 + code.len()) as u64;
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    let half = |elf: &mut Vec<u8>, value: u16| elf.extend(value.to_le_bytes());
    let word = |elf: &mut Vec<u8>, value: u32| elf.extend(value.to_le_bytes());
    let long = |elf: &mut Vec<u8>, value: u64| elf.extend(value.to_le_bytes());
    half(&mut elf, 2); // ET_EXEC: not relocatable
    half(&mut elf, 62); // x86-64
    word(&mut elf, 1);
    [entry, 64, 0].into_iter().for_each(|value| long(&mut elf, value));
    word(&mut elf, 0);
    [64, 56, 1, 0, 0, 0].into_iter().for_each(|value| half(&mut elf, value));
    word(&mut elf, 1); // PT_LOAD
    word(&mut elf, 5); // read and executed
    [0, begin, begin, len, len, 4096].into_iter().for_each(|value| long(&mut elf, value));
    elf.extend(code);
    elf
}

#[test]
fn a_guest_that_dies_shows_the_kernels_last_words() {
    let Some(bench) = Bench::new(TINY) else { return };
    bench.place.write("dies", exits_at_once());
    let ran = bench.verify("--guest dies");
    let texts =
        ["the guest panicked while booting", "  | ", "Attempted to kill init", "--keep DIR"];
    ran.fails(1, &texts);
}

#[test]
fn what_cannot_be_a_guest_is_refused() {
    let Some(bench) = Bench::new(TINY) else { return };
    let own = std::env::current_exe().unwrap();
    let refused = |guest: &str, problem: &str| {
        bench.verify(&format!("--guest {guest}")).fails(2, &[guest, problem, "hint: `make guest`"]);
    };
    refused("s.toml", "is not a program for x86-64");
    refused("nothing", "cannot be read");
    refused(own.to_str().unwrap(), "is not statically linked");
}

#[test]
fn what_is_no_kernel_is_refused() {
    let Some(bench) = Bench::new(TINY) else { return };
    let boot = bench.place.path("boot");
    fs::create_dir(&boot).unwrap();
    fs::write(boot.join("vmlinuz-x"), [0x5a; 70_000]).unwrap();
    fs::write(boot.join("bzImage"), [0x5a; 70_000]).unwrap();
    let kernel = |path: &str| bench.verify(&format!("--kernel {path}"));
    kernel("boot/vmlinuz-none").fails(2, &["boot/vmlinuz-none"]);
    kernel("boot/bzImage").fails(2, &["vmlinuz-VERSION"]);
    kernel("boot/vmlinuz-x").fails(2, &["no module `", "lib/modules/x", "hint: "]);
    // If the modules exist, QEMU boots it.
    let modules = bench.place.path("lib/modules");
    fs::create_dir_all(&modules).unwrap();
    let real = KernelImage::find().unwrap().modules;
    std::os::unix::fs::symlink(real, modules.join("x")).unwrap();
    kernel("boot/vmlinuz-x").fails(1, &["QEMU: "]);
}

#[test]
fn a_machine_too_small_for_a_kernel_is_refused() {
    let Some(bench) = Bench::new(&TINY.replace("128MiB", "32MiB")) else { return };
    bench.verify("").fails(2, &["a machine of 32 MiB is too small for a whole kernel"]);
}

#[test]
fn a_task_that_is_killed_is_noted() {
    let Some(bench) = Bench::new(&TINY.replace("\"1MiB\"", "\"512MiB\"")) else { return };
    let document = json(bench.verify("--format json"));
    let notes = lines(&document["notes"]);
    assert!(notes.contains("task `t` was killed: out of memory"), "{notes}");
    assert_eq!(linux(&document, "oom_kill"), 1.0);
}

#[test]
fn tasks_wait_for_each_other_and_groups_have_limits() {
    let more = r#"
[machine.swap]
size = "64MiB"

[[group]]
name = "outer"
memory.max = "32M"

[[group]]
name = "inner"
parent = "outer"
memory.high = "28M"

[[task]]
name = "second"
workload = "touch"
size = "2MiB"
after = "t"

[[task]]
name = "limited"
group = "inner"
workload = "touch"
size = "36MiB"
after = "second"
"#;
    let Some(bench) = Bench::new(&format!("{TINY}{more}")) else { return };
    let document = json(bench.verify("--format json"));
    assert!(!lines(&document["not_comparable"]).contains("memory."), "{document}");
    let notes = lines(&document["notes"]);
    assert!(!notes.contains("killed") && !notes.contains("failed"), "{notes}");
    let task = |name: &str| linux(&document, &format!("{name}.walltime"));
    let together = ["t", "second", "limited"].map(task).iter().sum::<f64>();
    assert!(linux(&document, "elapsed") >= together, "one after the other: {together} s");
    assert!(linux(&document, "pswpout") > 500.0, "36 MiB are more than 28");
}

#[test]
fn what_tasks_do_with_groups_is_done_and_counted() {
    // The kernel rejects the second `make` and the first `remove`; the task continues.
    let phases = [
        ("make", "create-group", "target = \"late\""),
        ("make-again", "create-group", "target = \"late\""),
        ("enter", "join-group", "target = \"late\""),
        ("fill", "touch", "size = \"8MiB\""),
        (
            "reclaim",
            "write-control",
            "target = \"late\"\ncontrol = \"memory.reclaim\"\ntext = \"4M\"",
        ),
        ("remove", "remove-group", "target = \"late\""),
        ("leave", "join-group", ""),
        ("remove-again", "remove-group", "target = \"late\""),
        ("end", "touch", "size = \"1MiB\""),
    ];
    let mut text = r#"
repeats = 1

[machine]
memory = "128MiB"
swap = "64MiB"

[[group]]
name = "outer"

[[group]]
name = "late"
parent = "outer"
at_start = false
memory.low = "1M"

[[task]]
name = "t"
group = "outer"
"#
    .to_owned();
    for (name, workload, keys) in phases {
        text += &format!("[[task.phase]]\nname = \"{name}\"\nworkload = \"{workload}\"\n{keys}\n");
    }
    let Some(bench) = Bench::new(&text) else { return };
    let document = json(bench.verify("--format json --repeats 1"));
    let notes = lines(&document["notes"]);
    assert!(notes.contains("making group `late`: File exists (os error 17)"), "{notes}");
    assert!(notes.contains("removing group `late`: Device or resource busy"), "{notes}");
    assert_eq!(notes.matches("os error").count(), 2, "{notes}");
    // In pages: 2048 in `late`, plus the per-CPU charge stock; `outer` includes all of it.
    let late = |what: &str| linux(&document, &format!("t.{what}"));
    assert_eq!(late("fill.late.anon"), 2048.0);
    assert!((2048.0..2300.0).contains(&late("fill.late.memory.current")));
    assert!(late("fill.outer.memory.current") >= late("fill.late.memory.current"));
    // Slots of pages under writeback count too.
    assert!((1024.0..=2048.0).contains(&late("reclaim.late.memory.swap.current")));
    assert!((1024.0..1536.0).contains(&late("reclaim.late.pgsteal_total")));
    let metrics = document["variants"][0]["metrics"].as_object().unwrap();
    for phase in ["make-again", "enter", "leave"] {
        let key = format!("t.{phase}.late.memory.events.low");
        assert!(metrics.contains_key(&key), "{key}");
    }
    assert!(!metrics.contains_key("t.remove-again.late.anon"), "it is gone");
}

#[test]
fn names_and_pipes_are_objects_of_their_group_if_the_kernel_accounts() {
    let text = r#"
repeats = 1
[machine]
memory = "128MiB"

[[group]]
name = "g"

[[task]]
name = "t"
group = "g"
phase = [
    { name = "files", workload = "names", make = 400, keep = "50 %" },
    { name = "missing", workload = "names", make = 100, kind = "missing" },
    { name = "pipes", workload = "pipes", make = 40, keep = "25 %" },
    { name = "rest", workload = "sleep", duration = "200ms" },
]
"#;
    let Some(bench) = Bench::new(text) else { return };
    let of = |accounting: &str| {
        let set = format!("--set machine.kmem_accounting={accounting}");
        let document = json(bench.verify(&format!("--format json {set}")));
        let notes = lines(&document["notes"]);
        assert!(!notes.contains("operations failed"), "{notes}");
        let cache = |name: &str| {
            let active =
                |when: &str| linux(&document, &format!("{when}.slabinfo.{name}.active_objs"));
            active("shrunk") - active("idle")
        };
        // Kept files outlive the task; pipes do not.
        assert_eq!(cache("shmem_inode_cache"), 200.0);
        // Entries in /proc of ended processes disappear.
        assert!((260.0..=310.0).contains(&cache("dentry")), "{}", cache("dentry"));
        assert!((0.5..=1.0).contains(&linux(&document, "t.rest.slab_utilisation")));
        linux(&document, "t.rest.g.slab")
    };
    // 200 files of 992 bytes, 100 names of 200, 10 pipes of 2608; in addition less than 10 KiB: the
    // table of open files, and closed files that wait for RCU.
    let wanted = 200.0 * 992.0 + 100.0 * 200.0 + 10.0 * 2608.0;
    let charged = of("true");
    assert!((charged - wanted).abs() < 10.0 * 1024.0, "{charged}, not {wanted}");
    assert_eq!(of("false"), 0.0);
}

#[test]
fn what_scenarios_say_in_detail_is_done_by_the_kernel() {
    let text = r#"
repeats = 1
[machine]
memory = "128MiB"

[[group]]
name = "web"
copies = 2

[[task]]
name = "t"
phase = [
    { name = "sparse", workload = "touch", size = "16MiB", stride = "2MiB", region = "sparse", passes = 3 },
    { name = "files", workload = "names", make = 4000, keep = "100 %" },
    { name = "pipes", workload = "pipes", make = 400, keep = "50 %" },
    { name = "thin", workload = "remove", of = "files", keep = "1 in 8" },
    { name = "close", workload = "remove", of = "pipes", keep = "1 in 8", pick = "random" },
    { name = "rest", workload = "sleep", duration = "300ms" },
    { name = "inodes", workload = "write-control", control = "slab.shmem_inode_cache.shrink", text = 1 },
    { name = "open", workload = "write-control", control = "slab.filp.shrink", text = 1 },
    { name = "names", workload = "write-control", control = "slab.dentry.shrink", text = 1 },
    { name = "vectors", workload = "write-control", control = "slab.kmalloc-64.shrink", text = 1 },
    { name = "after", workload = "sleep", duration = "1ms" },
    { name = "limit", workload = "write-control", target = "web.1", control = "memory.max", text = "8M" },
    { name = "enter", workload = "join-group", target = "web.1" },
    { name = "fill", workload = "touch", size = "4MiB" },
    { name = "leave", workload = "join-group" },
    { name = "remove", workload = "remove-group", target = "web.0" },
]
"#;
    let Some(bench) = Bench::new(text) else { return };
    let document = json(bench.verify("--format json"));
    let notes = lines(&document["notes"]);
    assert!(!notes.contains("os error") && !notes.contains("failed"), "{notes}");
    let of = |key: &str| linux(&document, key);
    assert_eq!(of("t.sparse.bytes"), 3.0 * 8.0 * 4096.0);
    // Free objects of a CPU's slab count as active until the cache is shrunk.
    let inodes = |when: &str, what: &str| of(&format!("{when}.slabinfo.shmem_inode_cache.{what}"));
    let made = inodes("t.after", "active_objs") - inodes("idle", "active_objs");
    assert_eq!(made, 500.0);
    let slabs = |when: &str| inodes(when, "num_slabs") - inodes("idle", "num_slabs");
    assert!(slabs("t.after") > 0.9 * slabs("t.files"), "one in eight keeps each slab");
    let open = of("t.after.slabinfo.filp.active_objs") - of("idle.slabinfo.filp.active_objs");
    assert!((20.0..110.0).contains(&open), "some 25 of 200 pipes with two ends: {open}");
    assert_eq!(of("t.fill.web.1.anon"), 1024.0);
    // Free blocks of all zones are the sum over zones; the program frees 20 MiB at its end.
    let blocks = |when: &str, order: usize| of(&format!("{when}nr_free_blocks_{order}"));
    for order in 0..11 {
        let zones = ["DMA", "DMA32"].map(|zone| format!("t.fill.buddyinfo.node0.{zone}."));
        let sum: f64 = zones.iter().map(|zone| blocks(zone, order)).sum();
        // Means of three runs each, whose sums match up to rounding.
        let all = blocks("t.fill.", order);
        assert!((sum - all).abs() < 1e-9, "order {order}: {sum}, {all}");
    }
    assert!(of("done.pgfree") + 1024.0 < of("pgfree"), "{} {}", of("done.pgfree"), of("pgfree"));
    assert!(of("done.nr_free_pages") + 1024.0 < of("nr_free_pages"));
    let simulated =
        |key: &str| document["variants"][0]["metrics"][key]["pagetide"]["mean"].as_f64();
    for key in ["done.pgfree", "t.fill.buddyinfo.node0.DMA32.nr_free_blocks_9", "t.fill.web.1.anon"]
    {
        assert!(simulated(key).is_some(), "both have {key}");
    }
}

#[test]
fn without_qemu_there_is_a_hint() {
    let Some(bench) = Bench::new(TINY) else { return };
    let nowhere = bench.place.path("nowhere");
    fs::create_dir(&nowhere).unwrap();
    let child = bench.command("").env("PATH", nowhere).spawn().unwrap();
    ran(&bench, child).fails(2, &["`qemu-system-x86_64` cannot be started", "make kernel"]);
}

fn signal(signal: &str, target: i64) {
    let status = Command::new("kill").args([signal, "--", &target.to_string()]).status().unwrap();
    assert!(status.success());
}

#[track_caller]
fn wait_until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_prints_the_finished_runs() {
    let Some(bench) = Bench::new(TINY) else { return };
    let line = "--repeats 500 --jobs 1 --keep kept --record kept --format json";
    let child = bench.command(line).spawn().unwrap();
    let kept = bench.place.path("kept");
    let third = kept.join("s.default.seed3.report");
    wait_until("the third run", || third.is_file());
    signal("-INT", child.id().into());
    let ran = ran(&bench, child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let ran = ran.says(&["interrupted: the result above has the finished runs only"]);
    let document = ran.json();
    let variant = &document["variants"][0];
    let runs = variant["linux_runs"].as_u64().unwrap();
    assert!((2..500).contains(&runs), "{runs} runs");
    assert_eq!(variant["pagetide_runs"].as_u64(), Some(runs));
    assert!(!kept.join("s.default.json").exists(), "no part of a recording");
}

#[test]
fn ctrl_c_and_sigterm_end_a_kernel_that_boots() {
    // A terminal sends ^C to the whole process group, including QEMU.
    for (name, to_all) in [("-INT", true), ("-INT", false), ("-TERM", false)] {
        let Some(bench) = Bench::new(TINY) else { return };
        let child = bench.command("").process_group(0).spawn().unwrap();
        wait_until("QEMU", || !bench.processes().is_empty());
        let id = i64::from(child.id());
        signal(name, if to_all { -id } else { id });
        ran(&bench, child).fails(130, &["interrupted before any run finished"]);
    }
}
