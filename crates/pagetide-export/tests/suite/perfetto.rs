//! A trace read by prost: slices close and nest, times ascend, counters agree with the table,
//! arrows have both ends, names are unchanged.

use super::schema::{Trace, TrackEvent};
use super::{ran, SCENARIO};
use pagetide_export::Perfetto;
use pagetide_sim::observe::ObserverHandle;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::runs::Collected;
use pagetide_testing::scenario;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Slice {
    thread: String,
    name: String,
    begin: u64,
    end: u64,
    depth: usize,
    /// Start and end.
    annotations: BTreeMap<String, String>,
}

/// A decoded trace.
#[derive(Default)]
struct Read {
    slices: Vec<Slice>,
    instants: Vec<(String, String, u64)>,
    /// Number of instants that are only counted.
    left_out: u64,
    /// Values by the name of the parent and of the counter.
    counters: BTreeMap<(String, String), Vec<f64>>,
    /// Start and end of each arrow.
    begins: BTreeMap<u64, u64>,
    ends: BTreeMap<u64, u64>,
    /// Time on CPUs, by thread.
    ran: BTreeMap<i32, u64>,
    threads: BTreeMap<i64, String>,
}

fn read(bytes: &[u8]) -> Read {
    let trace = Trace::decode(bytes).unwrap();
    let mut out = Read::default();
    let (mut names, mut keys) = (BTreeMap::new(), BTreeMap::new());
    let mut tracks: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (at, packet) in trace.packet.into_iter().enumerate() {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        assert_eq!(packet.sequence_flags == Some(1), at == 0, "state is cleared once");
        if let Some(interned) = packet.interned_data {
            let new = |name: super::schema::Name| (name.iid.unwrap(), name.name.unwrap());
            names.extend(interned.event_names.into_iter().map(new));
            keys.extend(interned.debug_annotation_names.into_iter().map(new));
        }
        if let Some(track) = packet.track_descriptor {
            let process = track.process.and_then(|process| process.process_name);
            if let Some(thread) = &track.thread {
                out.threads.insert(thread.tid.unwrap(), thread.thread_name.clone().unwrap());
            }
            let thread = track.thread.and_then(|thread| thread.thread_name);
            let name = process.or(thread).or(track.name).unwrap();
            let new = tracks.insert(track.uuid.unwrap(), (name, track.parent_uuid.unwrap_or(0)));
            assert!(new.is_none(), "a track is described once");
        }
        if let Some(bundle) = packet.ftrace_events {
            let sched = bundle.compact_sched.unwrap();
            let length = sched.switch_timestamp.len();
            assert_eq!(length, sched.switch_prev_state.len());
            assert_eq!(length, sched.switch_next_comm_index.len());
            let comms = sched.switch_next_comm_index.iter();
            assert!(comms.clone().all(|&at| (at as usize) < sched.intern_table.len()));
            let mut now = 0;
            for at in 0..length {
                let since = sched.switch_timestamp[at];
                if at > 0 {
                    *out.ran.entry(sched.switch_next_pid[at - 1]).or_default() += since;
                }
                now += since;
            }
            // A CPU without written switches has only its first switch, to the idle thread.
            assert!(now > 0 || length == 1);
        }
        let Some(event) = packet.track_event else { continue };
        let TrackEvent { r#type, name_iid, track_uuid, debug_annotations, .. } = event;
        let (now, track) = (packet.timestamp.unwrap(), track_uuid.unwrap());
        let (of, parent) = tracks[&track].clone();
        let before = last.insert(track, now).unwrap_or(0);
        assert!(before <= now, "{of}: {before} before {now}");
        let uses_names = name_iid.is_some() || !debug_annotations.is_empty();
        assert!(!uses_names || packet.sequence_flags == Some(2));
        let annotations = debug_annotations.into_iter().map(|it| {
            let value = it.string_value.or(it.uint_value.map(|number| number.to_string()));
            (keys[&it.name_iid.unwrap()].clone(), value.unwrap())
        });
        let annotations: BTreeMap<String, String> = annotations.collect();
        let left_out = annotations.get("instants").map_or(0, |count| count.parse().unwrap());
        out.left_out += left_out;
        let name = name_iid.map(|iid: u64| names[&iid].clone());
        out.begins.extend(event.flow_ids.iter().map(|&id| (id, now)));
        out.ends.extend(event.terminating_flow_ids.iter().map(|&id| (id, now)));
        let stack = open.entry(track).or_default();
        match r#type.unwrap() {
            1 => stack.push(Slice {
                thread: of,
                name: name.unwrap(),
                begin: now,
                end: 0,
                depth: stack.len(),
                annotations,
            }),
            2 => {
                let mut slice =
                    stack.pop().unwrap_or_else(|| panic!("{of}: nothing to end at {now}"));
                slice.end = now;
                slice.annotations.extend(annotations);
                out.slices.push(slice);
            }
            3 => out.instants.push((of, name.unwrap(), now)),
            4 => {
                let value = event.counter_value.map(|value| value as f64);
                let value = value.or(event.double_counter_value).unwrap();
                let parent = tracks[&parent].0.clone();
                out.counters.entry((parent, of)).or_default().push(value);
            }
            other => panic!("type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends: {open:?}");
    out
}

#[test]
fn slices_close_and_nest_and_arrows_arrive() {
    let ran = ran(SCENARIO);
    let read = read(&ran.perfetto);
    let named = |name: &str| read.slices.iter().filter(|slice| slice.name == name).count();
    for name in ["major fault", "memcg reclaim", "balance_pgdat", "request", "direct reclaim"] {
        assert!(named(name) > 0, "no {name}");
    }
    // A major fault is a slice; other faults are not.
    let major =
        |slice: &&Slice| slice.name == "major fault" || slice.annotations.contains_key("major");
    let majors = read.slices.iter().filter(major).count() as f64;
    assert_eq!(majors, ran.record.metrics["pgmajfault"].value);
    assert!((read.slices.len() as f64) < ran.record.metrics["pgfault"].value);
    assert_eq!(named("request") as f64, ran.record.metrics["web.requests"].value);
    let served = read.slices.iter().filter(|slice| slice.name == "request");
    let threads: BTreeSet<&str> = served.map(|slice| slice.thread.as_str()).collect();
    assert_eq!(threads, BTreeSet::from(["web", "web 1"]));
    for slice in &read.slices {
        assert!(
            slice.begin <= slice.end && slice.end <= ran.record.elapsed_ns + 50_000,
            "{slice:?}"
        );
        if slice.name == "memcg reclaim" {
            assert_eq!(slice.annotations["memcg"], "/slave");
            assert!(slice.depth > 0 && slice.annotations.contains_key("nr_reclaimed"), "{slice:?}");
        }
    }
    let reclaimed = |name: &str| -> u64 {
        let slices = read.slices.iter().filter(|slice| slice.name == name);
        slices.filter_map(|slice| slice.annotations.get("nr_reclaimed")?.parse::<u64>().ok()).sum()
    };
    let of_kswapd = ran.record.metrics["pgsteal_kswapd"].value as u64;
    assert_eq!(reclaimed("balance_pgdat"), of_kswapd, "batches are in the sums of slices");
    // One arrow per wake-up; kswapd follows all except those after its last check.
    let wakeups = read.instants.iter().filter(|(_, name, _)| name == "mm_vmscan_wakeup_kswapd");
    assert_eq!(wakeups.count(), read.begins.len());
    let last_look = read.ends.values().max().unwrap();
    for (id, begun) in &read.begins {
        match read.ends.get(id) {
            Some(ended) => assert!(begun <= ended),
            None => assert!(begun >= last_look, "{id} begins at {begun} and goes nowhere"),
        }
    }
    assert!(read.ends.keys().all(|id| read.begins.contains_key(id)));
}

#[test]
fn counters_are_those_of_the_table() {
    let ran = ran(SCENARIO);
    let read = read(&ran.perfetto);
    let metric = |name: &str| ran.record.metrics[name].value;
    let last = |parent: &str, name: &str| {
        let values = &read.counters.get(&(parent.to_owned(), name.to_owned()));
        *values.unwrap_or_else(|| panic!("no {parent} {name}")).last().unwrap()
    };
    let counts = [
        "pgmajfault",
        "pgfault",
        "pgscan_kswapd",
        "pgsteal_kswapd",
        "pswpin",
        "pswpout",
        "pgscan_direct",
    ];
    for name in counts {
        assert_eq!(last("vmstat", name), metric(name), "{name}");
    }
    for kind in ["some", "full"] {
        let total = last("machine", &format!("memory.pressure {kind} total"));
        // The mean over CPUs depends on how often PSI is read, as on a kernel.
        let wanted = metric(&format!("psi.memory.{kind}"));
        assert!((total / 1e9 - wanted).abs() < 0.2 * wanted, "{kind}: {total}, not {wanted} s");
    }
    let free: f64 = ["DMA", "DMA32"]
        .iter()
        .map(|zone| format!("node 0 zone {zone}"))
        .map(|zone| last(&zone, &format!("{zone} free")))
        .sum();
    assert_eq!(free, metric("nr_free_pages") * 4096.0);
    let timeline = ran.record.timeline.as_ref().unwrap();
    let low = last("node 0 zone DMA32", "node 0 zone DMA32 low") / 4096.0;
    assert_eq!(low, timeline.samples.last().unwrap().zones[1].low_pages as f64);
    for (group, path) in ["/master", "/slave", "/slave/inner"].into_iter().enumerate() {
        let anon = &read.counters[&(path.to_owned(), "anon".to_owned())];
        let rows = timeline.samples.iter().map(|sample| sample.rows[group + 1].unwrap());
        assert!(rows.map(|row| row.anon_pages as f64 * 4096.0).eq(anon.iter().copied()), "{path}");
    }
}

#[test]
fn cpus_run_the_threads_as_long_as_they_ran() {
    let ran = ran(SCENARIO);
    let read = read(&ran.perfetto);
    let tid_of =
        |name: &str| *read.threads.iter().find(|(_, thread)| *thread == name).unwrap().0 as i32;
    let reader = read.ran[&tid_of("reader")] as f64;
    let metric = |name: &str| ran.record.metrics[name].value;
    let used = (metric("reader.user") + metric("reader.system")) * 1e9;
    // The time on the CPU includes switches and interrupts, that of the task does not.
    assert!(reader >= used && reader < 1.5 * used, "{reader} for {used}");
    let all: u64 = read.ran.values().sum();
    assert!(all <= 2 * (ran.record.elapsed_ns + 50_000));
    let long = "a-name-of-sixty-four-characters-of-which-the-kernel-has-fifteen_";
    assert!(read.threads.values().any(|name| name == long), "{:?}", read.threads);
}

#[test]
fn a_run_that_is_cut_closes_its_slices_and_says_so() {
    let cut = SCENARIO.replace("name = \"groups\"\n", "name = \"groups\"\ntime_limit = \"60ms\"\n");
    let ran = ran(&cut);
    assert!(ran.record.notes.iter().any(|note| note.starts_with("cut by the time limit")));
    let read = read(&ran.perfetto);
    let cut = |slice: &&Slice| slice.annotations.get("ended").is_some_and(|why| why == "cut");
    assert!(read.slices.iter().filter(cut).count() > 0);
    assert!(read.slices.iter().all(|slice| slice.end <= 60_000_000 + 50_000));
}

#[test]
fn the_killed_are_shown_and_their_slices_end() {
    // Without swap, 48 MiB are too few for both tasks.
    let text = SCENARIO
        .replace("swap = \"256MiB\"", "")
        .replace("memory = \"64MiB\"", "memory = \"48MiB\"");
    let ran = ran(&text);
    let read = read(&ran.perfetto);
    assert!(read.instants.iter().any(|(_, name, _)| name == "mark_victim"));
    let killed = |slice: &&Slice| slice.annotations.get("ended").is_some_and(|why| why == "killed");
    assert!(read.slices.iter().any(|slice| killed(&slice)));
}

#[test]
fn what_comes_after_a_call_is_in_none() {
    // The disk queue is full, so a task sleeps after the call that submitted its last read.
    let mut text =
        "name = \"full\"\ntime_limit = \"300ms\"\n[machine]\ncpus = 2\nmemory = \"512MiB\"\n\
                    [[machine.disk]]\nname = \"sda\"\nmodel = \"ssd\"\n"
            .to_owned();
    for at in 0..120 {
        text += &format!(
            "[[file]]\nname = \"e{at}\"\nsize = \"64MiB\"\n\
             [[task]]\nname = \"r{at}\"\nworkload = \"file-read\"\nfile = \"e{at}\"\n"
        );
    }
    // The reader checks that times ascend and that slices that end have started.
    let read = read(&ran(&text).perfetto);
    let after = |slice: &&Slice| slice.name == "wait for the disk" && slice.depth == 0;
    assert!(read.slices.iter().any(|slice| after(&slice)), "the disk is never full after a call");
}

#[test]
fn a_control_file_that_shrinks_is_in_no_call_that_is_over() {
    let text = r#"
name = "drop"
machine = { cpus = 1, memory = "256MiB" }
[[task]]
name = "t"
phase = [
  { name = "touch", workload = "touch", size = "10MiB" },
  { name = "names", workload = "names", make = 5000, kind = "missing" },
  { name = "wait", workload = "sleep", duration = "3s" },
  { name = "drop", workload = "write-control", control = "vm.drop_caches", text = 2 },
  { name = "again", workload = "sleep", duration = "3s" },
]
"#;
    let read = read(&ran(text).perfetto);
    let long = |slice: &&Slice| slice.end - slice.begin >= 1_000_000_000;
    assert_eq!(read.slices.iter().filter(long).map(|slice| &slice.name).next(), None);
}

/// A task that thrashes and wakes kswapd all the time.
const THRASHING: &str = r#"
name = "thrashing"
machine = { cpus = 2, memory = "64MiB", swap = "256MiB" }
task = [{ name = "eat", workload = "touch", size = "70MiB", passes = 30 }]
variant = [{ name = "b", sysctl."vm.swappiness" = 1 }]
"#;

#[test]
fn a_trace_stays_below_its_size_and_counts_what_it_leaves_out() {
    // Events of the core; wake-ups are of the scheduler.
    let is_of_core = |name: &str| {
        name.starts_with("mm_") || ["boost_watermark", "balance_dirty_pages"].contains(&name)
    };
    let variant = &scenario(THRASHING).variants[0];
    let traced = |size: u64| {
        let out = Collected::default();
        let options = RunOptions {
            observers: vec![ObserverHandle::new(Perfetto::below(out.clone(), size))],
            ..RunOptions::default()
        };
        run("thrashing", variant, 7, &options).unwrap();
        out.bytes()
    };
    let whole = traced(u64::MAX);
    assert!(whole.len() > 1_000_000, "{}", whole.len());
    let (fine, wakes) = {
        let fine = read(&whole);
        let wakes = fine.instants.iter().filter(|(_, name, _)| is_of_core(name)).count();
        (fine, wakes as u64)
    };
    assert_eq!(fine.left_out, 0);
    for size in [50_000, 200_000, 800_000] {
        let bytes = traced(size);
        assert!((bytes.len() as u64) < size, "{} of {size}", bytes.len());
        let coarse = read(&bytes);
        let shown = coarse.instants.iter().filter(|(_, name, _)| is_of_core(name));
        assert_eq!(shown.count() as u64 + coarse.left_out, wakes);
        assert!(coarse.slices.iter().any(|slice| slice.annotations.contains_key("count")));
    }
}

#[test]
fn the_pressure_of_a_group_made_later_is_of_its_first_sample() {
    let text = r#"
name = "later"
machine = { cpus = 1, memory = "64MiB", swap = "256MiB" }
group = [{ name = "late", at_start = false, memory.max = "8MiB" }]
[[task]]
name = "t"
phase = [
  { name = "alone", workload = "sleep", duration = "2s" },
  { name = "make", workload = "create-group", target = "late" },
  { name = "join", workload = "join-group", target = "late" },
  { name = "eat", workload = "touch", size = "16MiB", passes = 10 },
]
"#;
    let ran = ran(text);
    let read = read(&ran.perfetto);
    let samples = &ran.record.timeline.as_ref().unwrap().samples;
    let first = samples.iter().position(|sample| sample.rows[1].is_some()).unwrap();
    assert!(first > 0, "it is there from the beginning");
    let length = samples[first].end_ns - samples[first - 1].end_ns;
    let share = 100.0 * samples[first].rows[1].unwrap().some_ns as f64 / length as f64;
    assert!(share > 0.0);
    let shown = read.counters[&("/late".to_owned(), "memory.pressure some".to_owned())][0];
    assert!((shown - share).abs() < 1e-9, "{shown} for {share}");
}
