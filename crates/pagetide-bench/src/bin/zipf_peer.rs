//! Our side of the comparison with libcachesim (scripts/bench_zipf.py drives both).
//!
//! ```text
//! zipf_peer generate FILE REQUESTS            the stream as an oracleGeneral trace
//! zipf_peer run FILE REQUESTS PERCENT         one round of `core`, `draw` and `world`, as JSON
//! lines zipf_peer run FILE REQUESTS PERCENT FORM    one round of a form
//! ```
//!
//! One million pages, Zipf(1.0), a machine with memory for PERCENT of them. Forms:
//!
//! * `world`: the whole simulation, `pagetide_sim`: a task draws the stream and reads a mapped
//!   sparse file with MADV_RANDOM; CPUs, scheduler, kswapd, event queue and cost model run.
//! * `draw`: the draws alone, to be subtracted from `world`.
//! * `core`: the memory manager and kswapd in a world without time (`driver`); the stream comes
//!   from the trace in memory.
//! * `swap`: like `core`, but the stream writes to anonymous memory, and excess pages are swapped
//!   out.
//! * `touch`: the core alone; anonymous memory of 4096 pages is mapped, touched page by page and
//!   unmapped, until REQUESTS pages were touched. It needs no trace.
//! * `world-touch`: the whole simulation; a task touches REQUESTS anonymous pages. Needs no trace.

use pagetide_bench::clock::timed;
use pagetide_bench::driver::{one_zone, Driver};
use pagetide_bench::stream;
use pagetide_core::config::Config;
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::frames::zone_type::ZONE_DMA32;
use pagetide_core::process::page_table::Advice;
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::swap::SwapOptions;
use pagetide_scenario::build::Builder;
use pagetide_scenario::model::Setup;
use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write};
use std::time::Duration;

const PAGES: u64 = 1_000_000;
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["generate", file, requests] => generate(file, requests.parse()?),
        ["run", file, requests, percent] => {
            round(file, requests.parse()?, percent.parse()?, &["core", "draw", "world"])
        }
        ["run", file, requests, percent, form] => {
            round(file, requests.parse()?, percent.parse()?, &[form])
        }
        _ => {
            Err("usage: zipf_peer generate FILE REQUESTS | run FILE REQUESTS PERCENT [FORM]".into())
        }
    }
}

fn generate(file: &str, requests: u64) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(fs::File::create(file)?);
    let mut time = 0;
    let mut result = Ok(());
    stream::accesses(&setup(requests, 1), SEED, |page| {
        if result.is_ok() {
            // A thousand requests per second; libcachesim needs times that never decrease.
            result = stream::write_record(&mut out, time / 1000, page);
        }
        time += 1;
    });
    result?;
    Ok(out.flush()?)
}

fn round(file: &str, requests: u64, percent: u64, forms: &[&str]) -> Result<(), Box<dyn Error>> {
    for &form in forms {
        match form {
            "core" | "swap" => core(form, &fs::read(file)?, percent),
            "draw" => draw(requests),
            "touch" => touch(requests),
            "world" => world(form, &setup(requests, percent), requests)?,
            "world-touch" => world(form, &touching(requests), requests)?,
            _ => return Err(format!("no form `{form}`").into()),
        }
    }
    Ok(())
}

fn report(form: &str, requests: u64, time: Duration, rest: &str) {
    let seconds = time.as_secs_f64();
    println!(r#"{{"form":"{form}","requests":{requests},"seconds":{seconds:.4}{rest}}}"#);
}

/// Pages of a zone in which `percent` of [`PAGES`] stay in memory: those pages, the page tables of
/// the mapping, and the free pages between the watermarks.
fn zone_pages(percent: u64) -> u64 {
    let tables = PAGES.div_ceil(512);
    let free = if percent >= 10 { 620 } else { 340 };
    PAGES * percent / 100 + tables + free
}

/// The stream reads a file, or (`swap`) writes to anonymous memory.
fn core(form: &str, trace: &[u8], percent: u64) {
    let swaps = form == "swap";
    let mut node = NodeSpec::default();
    node.zones[ZONE_DMA32] = ZoneSpec::all_free(zone_pages(percent));
    let mut config = Config::default();
    if swaps {
        config.page_cluster = 0;
    }
    let mut driver = Driver::new(node, config);
    let vma = if swaps {
        let slots = PAGES as u32 * 2;
        driver.executor.manager.swapon(SwapOptions::new(slots));
        driver.map_anon(PAGES)
    } else {
        driver.map_sparse_file(PAGES, Advice::Random)
    };
    let requests = (trace.len() / stream::RECORD) as u64;
    let (misses, time) = timed(|| {
        let mut misses = 0u64;
        for page in stream::objects(trace) {
            misses += u64::from(driver.access(vma, page, swaps));
        }
        misses
    });
    let majors = driver.executor.manager.mem.vmstat.get(Event::Pgmajfault);
    let file_pages = driver.executor.manager.mem.global_node_stat(NodeStat::NrFilePages);
    let miss = majors as f64 / requests as f64;
    let rest = format!(
        r#","miss_ratio":{miss:.5},"faults":{misses},"file_pages":{file_pages},"digest":"{:016x}""#,
        driver.executor.manager.digest()
    );
    report(form, requests, time, &rest);
}

fn touch(requests: u64) {
    const REGION: u64 = 4096;
    let mut driver = Driver::new(one_zone(64 << 20), Config::default());
    let (faults, time) =
        timed(|| (0..requests.div_ceil(REGION)).map(|_| driver.touch_once(REGION)).sum::<u64>());
    report("touch", requests, time, &format!(r#","faults":{faults}"#));
}

fn draw(requests: u64) {
    let setup = setup(requests, 1);
    let (sum, time) = timed(|| {
        let mut sum = 0u64;
        stream::accesses(&setup, SEED, |page| sum += page);
        sum
    });
    report("draw", requests, time, &format!(r#","sum":{sum}"#));
}

fn world(form: &str, setup: &Setup, requests: u64) -> Result<(), Box<dyn Error>> {
    let mut world = pagetide_sim::run::build(setup, SEED)?;
    let (finished, time) = timed(|| world.run(u64::MAX, 0, |_| false));
    finished?;
    let vmstat = &world.machine.mem.vmstat;
    let miss = vmstat.get(Event::Pgmajfault) as f64 / requests as f64;
    let rest = format!(
        r#","miss_ratio":{miss:.5},"pgscan_kswapd":{},"allocstall":{},"virtual_seconds":{:.3},"digest":"{:016x}""#,
        vmstat.get(Event::PgscanKswapd),
        vmstat.allocstall(),
        world.now as f64 / 1e9,
        world.machine.digest()
    );
    report(form, requests, time, &rest);
    Ok(())
}

/// One task that reads the file `requests` times by Zipf(1.0) draws.
fn setup(requests: u64, percent: u64) -> Setup {
    let entry = |name: &str| Builder::new().set("name", name);
    let zone = entry("DMA32").set("present", format!("{} pages", zone_pages(percent)));
    let disk = entry("disk").set("model", "nvme");
    let file = entry("file").set("size", format!("{PAGES} pages")).set("sparse", true);
    let task = entry("zipf")
        .set("workload", "mapped-read")
        .set("file", "file")
        .set("order", "zipf")
        .set("exponent", 1.0)
        .set("advice", "random")
        .set("passes", requests.div_ceil(PAGES) as i64);
    let machine = Builder::new().set("machine.cpus", 2).push("machine.zone", zone);
    valid(&machine.push("machine.disk", disk).push("file", file).push("task", task))
}

/// One task that touches this many pages of anonymous memory, on a machine with twice as many.
fn touching(pages: u64) -> Setup {
    let machine = Builder::new().set("machine.cpus", 2);
    let machine = machine.set("machine.memory", format!("{} pages", 2 * pages));
    let task = Builder::new().set("name", "toucher").set("workload", "touch");
    valid(&machine.push("task", task.set("size", format!("{pages} pages"))))
}

fn valid(machine: &Builder) -> Setup {
    let mut setup = machine.setup().unwrap_or_else(|mistakes| panic!("{mistakes}"));
    setup.time_limit_ns = u64::MAX;
    setup
}
