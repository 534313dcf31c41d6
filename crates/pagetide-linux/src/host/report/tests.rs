use super::*;
use crate::host::scenario::{write, HostImportOptions};
use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::model::{Setup, Task};
use std::path::Path;

// Made up, as Linux 6.1, 2.6.32 and 5.10 write them.
const FAILURE: &str = include_str!("../../../../../fuzz/corpus/kernel-report/failure");

const OLD: &str = include_str!("../../../../../fuzz/corpus/kernel-report/old");

const GROUP: &str = include_str!("../../../../../fuzz/corpus/kernel-report/group");

fn report(text: &str) -> KernelReport {
    parse(text, None).unwrap_or_else(|error| panic!("{error}"))
}

fn setup(text: &str) -> (Setup, String) {
    let report = report(text);
    let options =
        HostImportOptions { as_is: true, report: Some(&report), ..HostImportOptions::default() };
    let written = write(&report.snapshot(), options).unwrap();
    let loaded = load_str("r.toml", &written.text, Path::new(""), &Overrides::default());
    let notes: Vec<String> = written.notes.iter().map(ToString::to_string).collect();
    (loaded.unwrap().variants.remove(0).setup, format!("{}{}", written.text, notes.join("\n")))
}

#[test]
fn a_failed_allocation_is_read() {
    let found = report(FAILURE);
    let request = &found.request;
    assert_eq!((request.comm.as_str(), request.order, request.is_oom), ("kworker/3:1", 3, false));
    assert!(request.flags.direct && request.flags.fs && !request.flags.movable);
    assert_eq!((found.release.as_deref(), found.last_cpu), (Some("6.1.0-9-amd64"), Some(3)));
    let [zone] = &found.zones.zones[..] else { panic!("{found:?}") };
    assert_eq!((zone.free, zone.min, zone.managed), (Some(1600), Some(250), Some(15_000)));
    assert_eq!(zone.counters["nr_zone_inactive_file"], 2000);
    assert_eq!(found.zones.nodes[&0]["nr_slab_reclaimable"], 300);
    assert_eq!(found.zones.nodes[&0]["nr_page_table_pages"], 100);
    assert_eq!(found.free_blocks[0].blocks[..4], [400, 200, 100, 50]);
    assert_eq!(found.free_blocks[0].letters[..4], ["UM", "M", "U", "ME"]);
    assert_eq!((found.swap_kb, found.page_kb, found.notes.len()), (Some(8192), 4, 0));
    let (setup, text) = setup(FAILURE);
    let zone = &setup.machine.nodes[0].zones[0];
    let lists = zone.free_lists.unwrap();
    assert_eq!((zone.free, lists.blocks[0][2], lists.blocks[1][2]), (1600, 100, 0));
    assert_eq!(setup.machine.cpus, 4);
    let last = setup.tasks.last().unwrap();
    assert_eq!(last.name, "request");
    assert!(text.contains("order = 3\n") && text.contains("request = \"kernel\""), "{text}");
    let resident = setup.tasks[0].resident[0];
    assert_eq!((resident.active_anon, resident.inactive_file), (1500, 2000));
}

#[test]
fn old_reports_and_tables_of_processes_are_read() {
    let found = report(OLD);
    assert!(found.request.is_oom && found.request.order == 2);
    assert_eq!(found.release.as_deref(), Some("2.6.32-5-kirkwood"));
    let [zone] = &found.zones.zones[..] else { panic!("{found:?}") };
    assert_eq!((zone.present, zone.managed), (Some(65_024), None));
    assert_eq!(zone.counters["nr_slab_reclaimable"], 100);
    let [udevd, tar] = &found.processes[..] else { panic!("{found:?}") };
    assert_eq!((udevd.name.as_str(), udevd.rss, udevd.oom_score_adj), ("udevd", 300, -1000));
    assert_eq!((tar.rss, tar.oom_score_adj), (2500, 0));
    let (setup, _) = setup(OLD);
    let anon = |name: &str| {
        let task = setup.tasks.iter().find(|task| task.name == name).unwrap();
        task.resident.iter().map(|part| part.anon()).sum::<u64>()
    };
    assert_eq!((anon("udevd"), anon("tar"), anon("idle")), (300, 2500, 400));
    let quoted: String = OLD.lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!(report(&quoted).zones, found.zones);
}

#[test]
fn a_group_at_its_limit_is_read() {
    let found = report(GROUP);
    let group = found.group.as_ref().unwrap();
    let limit = ReportedLimit { usage_kb: 102_400, limit_kb: 102_400 };
    assert_eq!((group.path.as_str(), group.memory), ("/web.slice", Some(limit)));
    assert_eq!(found.processes[0].name, "stress me");
    let (setup, text) = setup(GROUP);
    // Less 6144 kB on no list, of which 180 kB are page tables.
    assert_eq!(setup.groups[0].controls[0].to_string(), "96436K");
    assert!(text.contains("5964 kB of the group's usage are on no list"), "{text}");
    assert!(setup.tasks.iter().all(|task| task.group == Some(0)));
    let resident: Vec<_> = setup.tasks.iter().map(|it| (it.name.as_str(), pages(it))).collect();
    assert_eq!(resident, [("stress_me", 23_000), ("idle-web_slice", 1064), ("request", 0)]);
    assert!(text.contains("does not describe the machine, which is assumed"), "{text}");
    let version_1 = "a invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0\n\
        Task in /a/b killed as a result of limit of /a\n\
        memory: usage 5120kB, limit 5120kB, failcnt 9\n\
        memory+swap: usage 5120kB, limit 10240kB, failcnt 0\n\
        Memory cgroup stats for /a: cache:8KB rss:5000KB inactive_anon:4000KB active_anon:1000KB\n\
        Memory cgroup stats for /a/b: cache:0KB rss:1KB inactive_anon:4KB active_anon:1KB\n";
    let found = report(version_1);
    let group = found.group.as_ref().unwrap();
    let both = ReportedLimit { usage_kb: 5120, limit_kb: 10_240 };
    assert_eq!((group.path.as_str(), group.memory_and_swap), ("/a", Some(both)));
    assert_eq!(group.stat[2], ("inactive_anon".to_owned(), 4004 << 10));
}

fn pages(task: &Task) -> u64 {
    task.resident.iter().map(|part| part.anon() + part.file()).sum()
}

/// A group of version 1 with these lines, in a scenario.
fn group_of_version_1(lines: &str) -> (Setup, String) {
    let first = "a invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0";
    let stat = "Memory cgroup stats for /a: inactive_anon:4000KB active_anon:1000KB";
    setup(&format!("{first}\nTask in /a/b killed as a result of limit of /a\n{lines}{stat}\n"))
}

#[test]
fn the_limit_of_a_group_can_be_unknown_or_that_of_memory_and_swap() {
    let limit = |setup: &Setup| setup.groups.first().map(|group| group.controls[0].to_string());
    let unlimited = "memory: usage 5120kB, limit 9007199254740988kB, failcnt 9\n";
    let both = "memory+swap: usage 6000kB, limit 6000kB, failcnt 0\n";
    // 880 kB are swapped out, and 120 kB less 2 page tables are on no list.
    let (setup, text) = group_of_version_1(&format!("{unlimited}{both}"));
    assert_eq!(limit(&setup).as_deref(), Some("5008K"), "{text}");
    let (setup, text) = group_of_version_1(&format!("{unlimited}{both}Total swap = 4000kB\n"));
    assert_eq!(limit(&setup), None);
    assert!(text.contains("limit of memory and swap (6000 kB) is left out"), "{text}");
    let constraint =
        "[  101.1] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/web,task_memcg=/web\n";
    let (setup, text) = self::setup(&format!("{FAILURE}{constraint}"));
    assert_eq!(limit(&setup), None);
    assert!(text.contains("the limit of the group is unknown"), "{text}");
}

#[test]
fn impossible_numbers_of_processes_are_bounded() {
    let adj = report(&OLD.replace("-17 udevd", "2147484 udevd")).processes[0].oom_score_adj;
    assert_eq!(adj, 1000);
    let adj = report(&OLD.replace("-17 udevd", "-8 udevd")).processes[0].oom_score_adj;
    assert_eq!(adj, -470);
    let huge = u64::MAX.to_string();
    let (setup, _) =
        setup(&OLD.replace(" 300   0", &format!(" {huge}   0")).replace("2500", &huge));
    assert_eq!(setup.tasks.iter().map(pages).sum::<u64>(), 3200 + 500);
}

#[test]
fn many_processes_and_small_zones_have_room_for_page_tables() {
    let zone = FAILURE.lines().find(|line| line.contains("Node 0 DMA32 free:")).unwrap();
    let blocks = FAILURE.lines().find(|line| line.contains("Node 0 DMA32: ")).unwrap();
    let mut text = FAILURE.to_owned();
    // All memory of zone Movable is on the lists or free.
    let full = zone.replace("DMA32", "Movable").replace(":65536kB", ":26400kB");
    let blocks = blocks.replace("DMA32", "Movable");
    text += &format!("{}\n{blocks}\n", full.replace(":60000kB", ":26400kB"));
    text += "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n";
    for number in 0..30 {
        text += &format!("[ {number} ] 0 {number} 5000 {} 4096 0 0 p{number}\n", 700 + number);
    }
    let (setup, text) = setup(&text);
    assert!(setup.tasks.len() > 24, "{text}");
}

#[test]
fn a_wrapped_first_line_and_other_page_sizes_are_read() {
    let (start, rest) = FAILURE.split_once("order:3, ").unwrap();
    let found = report(&format!("{start}\n[  101.000001] order:3, {rest}"));
    assert_eq!((found.request.order, found.request.line), (3, 2));
    let blocks = FAILURE.lines().find(|line| line.contains("Node 0 DMA32: ")).unwrap();
    let odd = FAILURE.replacen("Mem-Info:", "Mem-Info:\n[  101.000006] x: 1*64kB", 1) + blocks;
    assert_eq!(report(&odd).page_kb, 4);
}

#[test]
fn the_first_complete_report_is_taken() {
    let (start, rest) = FAILURE.split_once("order:3").unwrap();
    let (first, rest) = rest.split_once('\n').unwrap();
    let other = "[  101.000001] other: page allocation failure: order:1, mode:0xcc0(GFP_KERNEL)";
    let text = format!("{start}order:3{first}\n{other}\n{rest}");
    let found = report(&text);
    assert_eq!((found.request.order, found.request.line), (1, 3));
    assert!(found.notes[0].message.starts_with("the report in line 2 is not complete"));
    let error = parse(&text, Some(1)).unwrap_err();
    assert!(error.hint().contains("--report N"), "{error}");
    let (_, text) = setup(&text);
    assert!(!text.contains("# /proc/") && text.contains("# report: "), "{text}");
}

#[test]
fn one_of_several_reports_is_chosen() {
    let both = format!("{FAILURE}{}", FAILURE.replace("order:3", "order:5"));
    let first = report(&both);
    assert_eq!(first.request.order, 3);
    assert!(first.notes[0].message.contains("2 reports; this is number 1, others are in lines 20"));
    assert_eq!(parse(&both, Some(2)).unwrap().request.order, 5);
    for number in [0, 3] {
        let error = parse(&both, Some(number)).unwrap_err();
        assert!(matches!(error, HostError::NoReport { found: 2, .. }), "{error}");
    }
    assert!(matches!(parse("x\n", None), Err(HostError::NoReport { found: 0, .. })));
}

#[test]
fn a_report_that_is_cut_is_refused_with_its_line() {
    let without = |part: &str| {
        let kept = FAILURE.lines().filter(|line| !line.contains(part));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    for (text, line, message) in [
        (
            FAILURE.replace(" min:1000kB", " min:1000MB"),
            13,
            "zone DMA32 of node 0 has no `min` in kB",
        ),
        (FAILURE.replace("present:65536kB", "present:655"), 13, "has no `present`"),
        (FAILURE.lines().take(8).collect::<Vec<_>>().join("\n"), 2, "no zones and no group"),
        (without("4kB ("), 13, "zone DMA32 of node 0 has no line of free lists"),
        (FAILURE.replace("order:3", "order:x"), 2, "not an order"),
        (FAILURE.replace("mode:0x40cc0(GFP_KERNEL|__GFP_COMP)", "mode:GFP"), 2, "not a mask"),
        (GROUP.replace("memory: usage 102400kB", "memory: usage x"), 1, "not its usage and limit"),
    ] {
        let error = parse(&text, None).unwrap_err();
        let HostError::BadReport { line: at, message: said } = &error else { panic!("{error}") };
        assert!(*at == line && said.contains(message), "{error}");
    }
    let noted = |text: &str, part: &str| setup(text).1.contains(part);
    assert!(noted(&without("Total swap"), "the machine is given no swap"));
    assert!(noted(
        &FAILURE.replace(" free:1600 ", " free:9000 "),
        "1600 of the machine's 9000 free"
    ));
    let torn = report(&FAILURE.replace("= 6400kB", "= 6404kB"));
    assert!(torn.free_blocks.is_empty() && torn.notes[0].message.contains("left out"));
    for text in [FAILURE, OLD, GROUP] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let Ok(report) = parse(&text[..end], None) else { continue };
            let options =
                HostImportOptions { as_is: true, report: Some(&report), ..Default::default() };
            let written = write(&report.snapshot(), options);
            assert!(written.is_ok(), "{end}: {written:?}");
        }
    }
}
