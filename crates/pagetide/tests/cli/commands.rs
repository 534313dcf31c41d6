//! Tests of the smaller subcommands.

use pagetide_testing::directory::TestDir;
use pagetide_testing::scenarios::SMALL;
use pagetide_testing::{command, root};
use std::fs;

#[test]
fn check_goes_through_all_files() {
    let place = TestDir::with("good.toml", SMALL);
    place.write("bad.toml", "[machine]\nmemory = 0\n");
    place.write("worse.toml", "= = =");
    place.run("check good.toml").quietly();
    let ran = place.run("check bad.toml good.toml worse.toml").exits(2);
    assert_eq!(ran.stdout, "good.toml: ok, 2 variants of 3 repeats\n");
    ran.says(&["bad.toml:2:10", "worse.toml:1:"]);
}

#[test]
fn shipped_experiments_are_listed_and_good() {
    let place = TestDir::new();
    let list = place.run("list").quietly().stdout;
    let names: Vec<&str> =
        list.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(names.contains(&"tunable-watermarks"), "{list}");
    assert!(list.lines().all(|line| line.split_whitespace().count() > 2), "{list}");
    place.run(format!("check {}", names.join(" "))).quietly();
}

#[test]
fn the_schema_is_json() {
    let schema = TestDir::new().run("schema").quietly().json();
    assert!(schema["$defs"]["Scenario"]["properties"]["machine"].is_object());
}

#[test]
fn a_policy_that_the_program_does_not_register_is_located() {
    let place = TestDir::with("mine.toml", format!("{SMALL}\n[policy]\ngroups = \"mine\"\n"));
    let hint = "hint: this program has only `linux`; see docs/add-a-policy.md for how to add one";
    let texts = ["mine.toml:", "no policy of groups called `mine`", hint];
    place.run("run mine.toml").fails(2, &texts);
}

#[test]
fn inspect_prints_the_kernels_files() {
    let place = TestDir::with("small.toml", SMALL);
    let inspect = place.starting("inspect small.toml");

    let all = inspect("--variant early").succeeds();
    for name in ["zoneinfo", "buddyinfo", "pagetypeinfo", "vmstat", "meminfo"] {
        assert!(all.stdout.contains(&format!("==> /proc/{name} <==\n")), "{}", all.stdout);
    }
    for name in ["extfrag_index", "unusable_index"] {
        let heading = format!("==> /sys/kernel/debug/extfrag/{name} <==\nNode 0, zone ");
        assert!(all.stdout.contains(&heading), "{}", all.stdout);
    }
    assert!(all.stdout.contains("memory.stat <==\n"));
    all.says(&["small, variant early, seed 7, pagetide "]);

    let two = inspect("vmstat /proc/meminfo").stdout;
    assert!(two.starts_with("==> /proc/vmstat <==\n"));
    assert_eq!(two.matches("==>").count(), 2);

    let only = inspect("--only meminfo").stdout;
    let total = only.lines().next().unwrap();
    assert!(total.starts_with("MemTotal:") && total.ends_with(" kB"), "{total}");

    // The share of free pages in blocks of order 8 and less, computed from buddyinfo.
    let line =
        |name: &str| inspect(&format!("--only {name}")).stdout.lines().last().unwrap().to_owned();
    let buddies = line("buddyinfo");
    let blocks = buddies.split_whitespace().skip(4).map(|count| count.parse::<u64>().unwrap());
    let pages: Vec<u64> = blocks.enumerate().map(|(order, count)| count << order).collect();
    let (free, small): (u64, u64) = (pages.iter().sum(), pages[..9].iter().sum());
    let index = small * 1000 / free;
    let indices = line("unusable_index");
    let at_order_9 = indices.split_whitespace().nth(4 + 9).unwrap();
    assert_eq!(at_order_9, format!("{}.{:03}", index / 1000, index % 1000), "{buddies}");

    let seeded = inspect("--seed 8 --set machine.memory=128MiB --only meminfo");
    assert_ne!(seeded.stdout.lines().next(), Some(total));
    inspect("slabsinfo").fails(2, &["slabsinfo", "hint: did you mean `slabinfo`?"]);
    inspect("lru_gen").fails(2, &["no file `lru_gen`", "two lists", "--set policy.lru=mglru"]);
    let generations = place.starting("inspect small.toml --set policy.lru=mglru");
    generations("nothing").fails(2, &["choose from", "/sys/kernel/debug/lru_gen"]);
    assert!(generations("--only lru_gen").succeeds().stdout.starts_with("memcg "));
    let slabinfo = inspect("--only slabinfo").stdout;
    assert!(slabinfo.starts_with("slabinfo - version: 2.1\n# name            <active_objs> "));
    let groups = inspect("slab-groups").stdout;
    assert!(groups.starts_with("==> /pagetide/slab-groups <==\ngroup "), "{groups}");
    assert!(groups.contains("\n/ "), "{groups}");
    let caches = inspect("--only slab-caches").stdout;
    assert!(caches.lines().any(|row| row.starts_with("radix_tree_node ")), "{caches}");
    // Files of caches are printed only if they are named.
    assert!(!inspect("").stdout.contains("/sys/kernel/slab/"));
    for name in ["slab.kmalloc-64.objs_per_slab", "kmalloc-64/objs_per_slab"] {
        assert_eq!(inspect(&format!("--only {name}")).stdout, "64\n");
    }
    inspect("--variant late").fails(2, &["late"]);
    let json = inspect("--format json meminfo").json();
    assert_eq!(json["files"]["/proc/meminfo"], only);
}

/// A Lackey recording of a program that walks over 40 pages of its heap.
fn lackey() -> String {
    let mut text = String::from("==1== Lackey, an example Valgrind tool\nI  00400000,3\n");
    for page in 0..40 {
        text += &format!(" S {:08x},8\nI  00400003,4\n", 0x0480_0000 + page * 4096);
    }
    text
}

#[test]
fn a_trace_goes_in_and_is_described() {
    let place = TestDir::new();
    let ran = place.run_with_input("trace import lackey - -o out.ptt", lackey());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    ran.says(&["out.ptt: 81 references to 41 pages"]);
    let wanted = ["file       out.ptt\n", "references 81 in ", "pages      41 (0.2 MiB)\n"];
    place.run("trace info out.ptt").quietly().prints(&wanted);
}

#[test]
fn a_bad_trace_is_refused_and_nothing_stays() {
    let place = TestDir::new();
    place.write("in.txt", lackey() + " S zzz,8\n");
    let import = "trace import lackey in.txt -o out.ptt";
    place.run(import).fails(2, &["in.txt", "line 83", "hint:"]);
    place.run("trace import oracle-general in.txt -o o.ptt").fails(2, &["hint:"]);
    assert_eq!(place.names(), ["in.txt"]);

    place.write("in.txt", lackey());
    place.run(import).succeeds();
    let whole = fs::read(place.path("out.ptt")).unwrap();
    place.write("cut.ptt", &whole[..whole.len() - 20]);
    place.run("trace info cut.ptt").fails(2, &["cut.ptt", "byte ", "hint:"]);
    place.run("trace info absent.ptt").fails(2, &["absent.ptt"]);
    place.run("trace import lackey absent -o o.ptt").fails(2, &["absent"]);
}

#[cfg(unix)]
#[test]
fn an_import_replaces_only_a_page_trace() {
    let place = TestDir::new();
    let at = |name: &str| place.path(name);
    place.write("in.txt", lackey());
    place.write("mine.toml", "mine");
    std::os::unix::fs::symlink("mine.toml", at("link")).unwrap();
    fs::hard_link(at("in.txt"), at("same")).unwrap();
    fs::create_dir(at("dir")).unwrap();
    let import = place.starting("trace import lackey in.txt -o");
    for output in ["link", "dir", "/dev/null"] {
        import(output).fails(2, &["is not a regular file", "hint: nothing was written"]);
    }
    for output in ["in.txt", "./in.txt", "same", "mine.toml"] {
        import(output).fails(2, &["exists and is not a page trace", "hint: nothing was written"]);
    }
    assert_eq!(place.read("in.txt"), lackey());
    assert_eq!(place.read("mine.toml"), "mine");
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    import("new.ptt").succeeds();
    // A trace may be made again.
    import("new.ptt").succeeds();
}

#[cfg(unix)]
#[test]
fn an_import_that_waits_for_input_can_be_ended() {
    for signal in ["INT", "TERM"] {
        let place = TestDir::new();
        let mut command = place.command("trace import lackey -o out.ptt");
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        // stdin stays open, so the input never ends.
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, b"I  00400000,3\n").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!(place.names().len(), 1, "the spool is there");
        command::end(child, signal).exits(130);
        assert!(place.names().is_empty(), "{signal}");
    }
}

#[test]
fn csv_columns_are_named_as_libcachesim_names_them() {
    let place = TestDir::with("in.csv", "time,id,size\n0,7,4096\n1,8,8192\n2,7,4096\n");
    let import = place.starting("trace import csv in.csv -o out.ptt");
    import("--time-col 1 --obj-id-col 2 --obj-size-col 3 --has-header").succeeds();
    let by_options = fs::read(place.path("out.ptt")).unwrap();
    import("-t time-col=1,obj-id-col=2,obj-size-col=3,has-header=true").succeeds();
    assert_eq!(fs::read(place.path("out.ptt")).unwrap(), by_options);

    import("--obj-id-col 0").fails(2, &["obj-id-col", "hint:"]);
    import("-t obj-id-col=2,colour=3").fails(2, &["colour"]);
    let lackey = place.run("trace import lackey in.csv -o x.ptt --obj-id-col 2");
    lackey.fails(2, &["`--obj-id-col` is for csv only"]);
}

#[test]
fn help_version_and_completions() {
    let place = TestDir::new();
    let version = place.run("--version").quietly().stdout;
    assert_eq!(version, format!("pagetide {}\n", env!("CARGO_PKG_VERSION")));
    let commands = ["run", "check", "list", "schema", "trace", "inspect", "Exit codes"];
    place.run("--help").quietly().prints(&commands);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        place.run(format!("completions {shell}")).quietly().prints(&["inspect"]);
    }
    place.run("").exits(2);
}

#[test]
fn verify_refuses_what_needs_a_patched_kernel() {
    // The second variant is rejected before the first one boots, so the test needs no kernel and no
    // QEMU.
    let text = "[machine]\nmemory = \"128MiB\"\n[[task]]\nname = \"t\"\nworkload = \"build\"\n\
        path = \"cc.ptt\"\nunits = 1\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n\
        set = { \"task.t.stack_order\" = 2 }\n";
    let place = TestDir::with("high.toml", text);
    let trace = fs::read(root().join("experiments/traces/cc1-zpipe.ptt")).unwrap();
    place.write("cc.ptt", trace);
    let refused = "cannot be run on a real kernel here: task `t`, phase `main`: a build with \
        stack_order, kernel_pages or a mix needs a kernel that gives memory on request";
    place.run("verify high.toml").fails(2, &["variant b: ", refused]);
}

#[test]
fn inspect_stops_at_a_time() {
    let place = TestDir::with("small.toml", SMALL);
    let inspect = place.starting("inspect small.toml");
    let faults = |args: &str| -> u64 {
        let ran = inspect(&format!("--only vmstat {args}")).succeeds();
        assert!(!ran.stderr.contains("time limit"), "{ran:?}");
        let line = ran.stdout.lines().find_map(|line| line.strip_prefix("pgfault "));
        line.unwrap().parse().unwrap()
    };
    let (none, early, late, end) =
        (faults("--at 0"), faults("--at 2ms"), faults("--at 0.01s"), faults(""));
    assert!(none <= early && early < late && late < end, "{none} {early} {late} {end}");
    let two = inspect("--at 2ms zoneinfo buddyinfo");
    assert_eq!(two.stdout.matches("==>").count(), 2);
    two.says(&["after 0.002 s"]);
    inspect("--at 1h").fails(2, &["before 3600 s"]);
    inspect("--at 9").fails(2, &["write times like 1.5s"]);
    inspect("--at 1s --timeline").fails(2, &["cannot be used with"]);
}
