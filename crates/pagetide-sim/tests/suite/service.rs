//! Services: latencies match queueing theory, a stall delays all requests that arrive during it,
//! rates and load curves are respected, and threads share the memory of one process.

use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::{scenario, value};

const MACHINE: &str = "[machine]\ncpus = 4\nmemory = \"64MiB\"\nswap = \"64MiB\"\n";

fn record_of(text: &str, options: &RunOptions) -> RunRecord {
    run("service", &scenario(text).variants[0], 7, options).unwrap()
}

fn served(keys: &str) -> RunRecord {
    let task = "[[task]]\nname = \"web\"\nworkload = \"service\"\n";
    record_of(&format!("{MACHINE}{task}{keys}"), &RunOptions::default())
}

#[track_caller]
fn near(value: f64, wanted: f64, share: f64) {
    println!("{value:.6} for {wanted:.6}, {:+.2} %", 100.0 * (value / wanted - 1.0));
    assert!((value - wanted).abs() <= share * wanted, "{value} is not near {wanted}");
}

/// CPU time of a request, in seconds; one thread serves 1000 a second.
const SERVICE: f64 = 0.001;

#[test]
fn one_thread_with_exponential_times_is_m_m_1() {
    let keys =
        "rate = 500\nrequests = 200_000\ncpu = \"1ms\"\ncpu_distribution = \"exponential\"\n";
    let record = served(keys);
    // At a load of one half, the sojourn time is exponential with twice the mean of the service
    // time.
    let mean = 2.0 * SERVICE;
    near(value(&record, "web.latency_mean"), mean, 0.03);
    near(value(&record, "web.latency_p50"), mean * 2f64.ln(), 0.03);
    near(value(&record, "web.latency_p99"), mean * 100f64.ln(), 0.03);
    assert_eq!(value(&record, "web.requests"), 200_000.0);
    near(value(&record, "web.request_rate"), 500.0, 0.01);
}

#[test]
fn two_threads_with_exponential_times_are_m_m_2() {
    let record = served(
        "rate = 1000\nrequests = 200_000\nthreads = 2\ncpu = \"1ms\"\n\
         cpu_distribution = \"exponential\"\n",
    );
    // Erlang: at a load of one half of two servers, a third of the requests wait. P(T > x) = e^-x
    // (1 + x / 3).
    near(value(&record, "web.latency_mean"), SERVICE * 4.0 / 3.0, 0.03);
    let (mut low, mut high) = (0.0f64, 20.0f64);
    for _ in 0..60 {
        let x = (low + high) / 2.0;
        match (-x).exp() * (1.0 + x / 3.0) > 0.01 {
            true => low = x,
            false => high = x,
        }
    }
    near(value(&record, "web.latency_p99"), SERVICE * low, 0.03);
}

#[test]
fn fixed_times_are_m_d_1() {
    let record = served("rate = 500\nrequests = 200_000\ncpu = \"1ms\"\n");
    // Pollaczek-Khinchine: half of the wait with exponential service times.
    near(value(&record, "web.latency_mean") - SERVICE, SERVICE / 2.0, 0.03);
}

#[test]
fn even_arrivals_do_not_wait() {
    let record = served("arrivals = \"even\"\nrate = 500\nduration = \"4s\"\ncpu = \"1ms\"\n");
    assert_eq!(value(&record, "web.requests"), 2000.0);
    near(value(&record, "web.latency_mean"), SERVICE, 0.01);
    near(value(&record, "web.latency_max"), SERVICE, 0.02);
    near(value(&record, "web.walltime"), 4.0, 0.001);
}

#[test]
fn a_stall_is_felt_by_all_that_arrive_during_it() {
    // The service gets no CPU for the second in which a task with much higher priority uses the
    // only one.
    let record = record_of(
        "[machine]\ncpus = 1\nmemory = \"64MiB\"\n\
         [[task]]\nname = \"web\"\nworkload = \"service\"\narrivals = \"even\"\nrate = 1000\n\
         duration = \"10s\"\ncpu = \"1us\"\ndeadline = \"10ms\"\nnice = 19\n\
         [[task]]\nname = \"stall\"\nstart = \"3s\"\nworkload = \"compute\"\nduration = \"1s\"\nnice = -20\n",
        &RunOptions::default(),
    );
    assert_eq!(value(&record, "web.requests"), 10_000.0);
    // A client that waits for each response would see one slow request. With regular arrivals, a
    // thousand requests are slow, and their latencies decrease evenly from the length of the stall.
    let late = value(&record, "web.late");
    assert!((900.0..1000.0).contains(&late), "{late}");
    // The scheduler runs the service once in that second, so the longest stall is only a part of
    // it. The 99th percentile arrived a hundred requests, or 100 ms, after the slowest.
    let (max, p99) = (value(&record, "web.latency_max"), value(&record, "web.latency_p99"));
    assert!(max > 0.5, "{max}");
    near(p99, max - 0.1, 0.03);
    assert!(value(&record, "web.latency_p50") < 0.001);
}

#[test]
fn a_service_that_cannot_keep_up_is_overloaded() {
    let notes = |keys: &str| {
        let keys = format!("{keys}cpu = \"1ms\"\nthreads = 2\n");
        served(&keys).notes
    };
    let is_overload = |notes: &[String]| {
        let words = ["task `web` is overloaded: ", " % of its requests were dropped or still wait"];
        notes.len() == 1 && words.iter().all(|part| notes[0].contains(part))
    };
    for keys in [
        "rate = 2500\nduration = \"2s\"\n",
        "rate = 2500\nrequests = 5000\n",
        "rate = 2500\nduration = \"2s\"\nqueue = 10\n",
        // Threads are idle between bursts, but a burst does not fit into the queue.
        "rate = 1800\nduration = \"2s\"\nqueue = 0\n",
    ] {
        assert!(is_overload(&notes(keys)), "{keys}");
    }
    for keys in ["rate = 1800\nduration = \"2s\"\n", "rate = 1000000\nrequests = 3\n"] {
        assert_eq!(notes(keys), [""; 0], "{keys}");
    }
    // It is stopped before its load ends.
    let record = record_of(
        &format!(
            "{MACHINE}[[task]]\nname = \"web\"\nworkload = \"service\"\nrate = 2500\n\
             cpu = \"1ms\"\nthreads = 2\nbackground = true\n\
             [[task]]\nname = \"rest\"\nworkload = \"sleep\"\nduration = \"2s\"\n"
        ),
        &RunOptions::default(),
    );
    assert!(is_overload(&record.notes));
}

#[test]
fn without_a_deadline_no_request_is_late_or_in_time() {
    let keys = "rate = 500\nrequests = 10\ncpu = \"1ms\"\n";
    let record = served(keys);
    assert!(!record.metrics.keys().any(|key| key.ends_with(".late")), "{record:?}");
    let record = served(&format!("{keys}deadline = \"1s\"\n"));
    assert_eq!([value(&record, "web.late"), value(&record, "web.main.late")], [0.0, 0.0]);
}

#[test]
fn a_full_queue_drops() {
    // A thread that serves 100 a second gets 1000 requests: it serves 100, and 10 wait at the end.
    let record =
        served("arrivals = \"even\"\nrate = 1000\nduration = \"1s\"\ncpu = \"10ms\"\nqueue = 10\n");
    let (requests, dropped) = (value(&record, "web.requests"), value(&record, "web.dropped"));
    assert_eq!(requests + dropped, 1000.0);
    assert!((109.0..=112.0).contains(&requests), "{requests}");
    near(value(&record, "web.latency_max"), 0.11, 0.03);
    let record =
        served("arrivals = \"even\"\nrate = 200\nduration = \"1s\"\ncpu = \"8ms\"\nqueue = 0\n");
    assert_eq!(value(&record, "web.dropped"), 100.0, "the thread is busy for every second request");
}

#[test]
fn a_curve_scales_the_requests() {
    let of = |load: &str| {
        let keys = "arrivals = \"even\"\nrate = 1000\nduration = \"2s\"\ncpu = \"10us\"\n";
        value(&served(&format!("{keys}{load}")), "web.requests")
    };
    assert_eq!(of(""), 2000.0);
    assert_eq!(of("load = [[\"0s\", \"50 %\"]]\n"), 1000.0);
    assert_eq!(of("load = [[\"0s\", \"0 %\"], [\"2s\", \"100 %\"]]\n"), 1000.0);
    assert_eq!(of("load = [[\"1s\", \"20 %\"], [\"1s\", \"100 %\"]]\n"), 1200.0);
    assert_eq!(
        of("load = [[\"0s\", \"100 %\"], [\"999.5ms\", \"100 %\"], [\"999.5ms\", 0]]\n"),
        1000.0
    );
}

#[test]
fn touches_at_a_rate_take_as_long_as_that_says() {
    let took = |workload: &str| {
        let task = "[[task]]\nname = \"t\"\n";
        value(
            &record_of(&format!("{MACHINE}{task}{workload}"), &RunOptions::default()),
            "t.walltime",
        )
    };
    let touch = "workload = \"touch\"\nsize = \"16MiB\"\n";
    near(took(&format!("{touch}rate = \"32MiB/s\"\n")), 0.5, 0.005);
    near(took(&format!("{touch}rate = \"1024 pages/s\"\n")), 4.0, 0.005);
    near(took(&format!("{touch}rate = \"32MiB/s\"\nload = [[\"0s\", \"25 %\"]]\n")), 2.0, 0.005);
    near(took(&format!("{touch}passes = 2\norder = \"zipf\"\nrate = \"32MiB/s\"\n")), 1.0, 0.005);
    let set = "workload = \"working-set\"\nanon = \"4MiB\"\npopulate = true\naccesses = 10_000\n";
    near(took(&format!("{set}rate = \"5000 pages/s\"\n")), 2.0, 0.005);
    assert!(took(touch) < 0.05, "without a rate it does not wait");
}

/// All operations of a request, on a machine with too little memory.
const BUSY: &str = "[[file]]\nname = \"data\"\nsize = \"32MiB\"\n\
    [[group]]\nname = \"g\"\nmemory.high = \"24M\"\n\
    [[task]]\nname = \"web\"\ngroup = \"g\"\nworkload = \"service\"\nrate = 2000\nduration = \"2s\"\n\
    threads = 8\ncpu = \"200us\"\ncpu_distribution = \"exponential\"\nheap = \"40MiB\"\ntouches = 8\n\
    file = \"data\"\nread = \"16KiB\"\nwrite = \"4KiB\"\nallocate = \"64KiB\"\ngrow = \"4MiB/s\"\n\
    deadline = \"20ms\"\nqueue = 1000\nload = [[\"0s\", \"20 %\"], [\"1s\", \"100 %\"]]\n";

#[test]
fn threads_of_a_service_share_its_memory_and_pass_the_audit() {
    let options = RunOptions { audit_every: 500, want_timeline: true, ..RunOptions::default() };
    let record = record_of(&format!("{MACHINE}{BUSY}"), &options);
    let served = value(&record, "web.requests");
    assert!(served > 1000.0, "{served}");
    assert!(value(&record, "pswpout") > 0.0 && value(&record, "g.memory.events.high") > 0.0);
    // Faults and CPU time of all threads are the task's.
    assert!(value(&record, "web.user") > 0.9 * served * 200e-6, "{}", value(&record, "web.user"));
    assert!(value(&record, "web.alloc_latency_max") > 0.0);
    // The samples add up to all requests.
    let timeline = record.timeline.clone().unwrap();
    assert_eq!(timeline.services, ["web"]);
    let rows = timeline.samples.iter().map(|sample| sample.services[0]);
    let all = rows
        .fold(Default::default(), |sum: pagetide_scenario::record::timeline::ServiceRow, row| {
            sum.merged(&row)
        });
    assert_eq!(all.requests as f64, served);
    assert_eq!(all.late as f64, value(&record, "web.late"));
    assert_eq!(all.dropped as f64, value(&record, "web.dropped"));
    assert_eq!(all.latency_max_ns as f64 / 1e9, value(&record, "web.latency_max"));
    assert_eq!(value(&record, "web.main.requests"), served);
}

#[test]
fn same_seed_same_run() {
    let text = format!("{MACHINE}{BUSY}");
    let records = [0, 1].map(|_| record_of(&text, &RunOptions::default()));
    let [first, second] = records.map(|record| serde_json::to_string(&record).unwrap());
    assert_eq!(first, second);
}

#[test]
fn a_service_that_is_killed_ends_with_all_its_threads() {
    let text = format!("{MACHINE}{BUSY}")
        .replace("memory.high = \"24M\"", "memory.max = \"30M\"\nmemory.swap.max = \"4M\"");
    let options = RunOptions { audit_every: 1, ..RunOptions::default() };
    let record = record_of(&text, &options);
    assert_eq!(value(&record, "g.memory.events.oom_kill"), 1.0);
    assert_eq!(record.notes.len(), 1, "{:?}", record.notes);
    assert!(record.notes[0].contains("`web`"), "{:?}", record.notes);
    assert_eq!(value(&record, "g.anon"), 0.0);
}

#[test]
fn a_service_is_stopped_and_served_again() {
    let text = format!(
        "{MACHINE}[[task]]\nname = \"web\"\nloops = 4\n\
         [[task.phase]]\nname = \"a\"\nworkload = \"service\"\nrate = 1000\nrequests = 500\nthreads = 3\n\
         cpu = \"1ms\"\nallocate = \"16KiB\"\n\
         [[task.phase]]\nname = \"b\"\nworkload = \"service\"\nrate = 1000\nrequests = 100\ncpu = \"1us\"\n\
         [[task]]\nname = \"side\"\nuntil = \"web\"\nworkload = \"service\"\nrate = 100\nthreads = 2\n\
         cpu = \"3ms\"\n"
    );
    let options = RunOptions { audit_every: 1, ..RunOptions::default() };
    let record = record_of(&text, &options);
    assert_eq!(value(&record, "web.requests"), 2400.0);
    assert_eq!(value(&record, "web.a.requests"), 500.0);
    assert_eq!(value(&record, "web.b.requests"), 100.0);
    let side = value(&record, "side.requests");
    assert!((120.0..360.0).contains(&side), "{side}");
}

#[test]
fn a_stall_that_lasts_until_the_stop_is_felt() {
    // The service is in the background; for the last 400 ms of the run another task has the only
    // CPU.
    let record = record_of(
        "[machine]\ncpus = 1\nmemory = \"64MiB\"\n[[task]]\nname = \"web\"\nbackground = true\n\
         workload = \"service\"\narrivals = \"even\"\nrate = 1000\ncpu = \"100us\"\ndeadline = \"10ms\"\n\
         nice = 19\n[[task]]\nname = \"batch\"\nstart = \"2s\"\nnice = -20\nworkload = \"compute\"\n\
         duration = \"400ms\"\n",
        &RunOptions::default(),
    );
    let of = |name: &str| value(&record, &format!("web.{name}"));
    near(of("requests") + of("unfinished"), 2400.0, 0.02);
    // The requests of the last 10 of these 400 ms are not late yet.
    assert!(
        of("late") >= 300.0 && of("unfinished") >= 300.0,
        "{} {}",
        of("late"),
        of("unfinished")
    );
}

#[test]
fn stalls_and_memory_of_all_threads_count() {
    let with = |threads: u32| {
        let record = served(&format!(
            "threads = {threads}\nrate = 400\nduration = \"4s\"\nheap = \"80MiB\"\norder = \"random\"\n\
             touches = 10\n"
        ));
        (value(&record, "web.stall_refault"), value(&record, "web.allocated"))
    };
    let (one, eight) = (with(1), with(8));
    assert!(one.0 > 0.05, "it swaps: {one:?}");
    near(eight.0, one.0, 0.5);
    near(eight.1, one.1, 0.1);
}

#[test]
fn requests_arrive_while_the_threads_of_a_killed_service_end_one_by_one() {
    for seed in 0..20 {
        let threads = 2 + seed % 7;
        let record = record_of(
            &format!(
                "[machine]\ncpus = 2\nmemory = \"64MiB\"\n[[group]]\nname = \"small\"\n\
                 \"memory.max\" = \"8M\"\n[[task]]\nname = \"web\"\ngroup = \"small\"\n\
                 workload = \"service\"\nthreads = {threads}\nrate = {}\nduration = \"2s\"\n\
                 cpu = \"50us\"\ngrow = \"32MiB/s\"\n",
                5000 + 700 * seed
            ),
            &RunOptions::default(),
        );
        assert!(record.notes.iter().any(|note| note.contains("was killed")), "{:?}", record.notes);
    }
}

/// A service that misses in the page cache, with even arrivals far apart.
fn reader_with(latency: &str, seed: u64) -> RunRecord {
    let text = format!(
        "[machine]\nmemory = \"64MiB\"\n\
         disk = [{{ name = \"disk\", model = \"instant\", read_latency = {latency} }}]\n\
         [[file]]\nname = \"data\"\nsize = \"1GiB\"\n\
         [[task]]\nname = \"web\"\nworkload = \"service\"\narrivals = \"even\"\nrate = 100\n\
         requests = 5000\nfile = \"data\"\nread = \"4KiB\"\n"
    );
    run("service", &scenario(&text).variants[0], seed, &RunOptions::default()).unwrap()
}

#[test]
fn a_distribution_of_latencies_gives_a_service_its_tail() {
    let percentile = |record: &RunRecord, name: &str| value(record, &format!("web.latency_{name}"));
    let fixed = reader_with("\"120us\"", 7);
    assert!(percentile(&fixed, "p999") < 1.5 * percentile(&fixed, "p50"));
    let tail =
        "{ p50 = \"90us\", p90 = \"100us\", p99 = \"2ms\", p999 = \"6ms\", mean = \"120us\" }";
    let spread = reader_with(tail, 7);
    // The tail makes the mean of 5000 draws vary by some per cent.
    near(percentile(&spread, "mean"), percentile(&fixed, "mean"), 0.15);
    assert!(percentile(&spread, "p99") > 5.0 * percentile(&spread, "p50"));
    assert!(percentile(&spread, "p999") > 2.0 * percentile(&spread, "p99"));
    assert_eq!(reader_with(tail, 7), spread, "the same seed");
    assert_ne!(percentile(&reader_with(tail, 8), "mean"), percentile(&spread, "mean"));
}
