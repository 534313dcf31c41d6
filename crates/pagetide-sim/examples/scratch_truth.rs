use pagetide_scenario::model::*;
use pagetide_sim::{run, RunOptions};
use std::collections::BTreeMap;

fn ws(a: Option<u64>, f: Option<u64>, populate: bool, accesses: u64) -> Workload {
    Workload::WorkingSet(WorkingSet {
        anon: a.map(|p| ("a".to_string(), p)),
        file: f.map(|p| (0, "f".to_string(), p, Advice::Random)),
        populate,
        accesses,
        anon_percent: 50,
        hot_access_percent: 80,
        hot_page_percent: 20,
        write_percent: 100,
        generator_seed: Some(1),
    })
}
fn main() {
    let case = std::env::args().nth(1).unwrap();
    let csv = std::fs::read_to_string("/work/shared/truth/linux-6.1.csv").unwrap();
    let mut phases = vec![];
    let mut name = "wset";
    match case.as_str() {
        "seq2x" => {
            name = "stream";
            for i in 0..2 {
                phases.push(Phase { name: format!("pass{i}"), workload: Workload::MappedRead { file: 0, pages: 98304, order: Order::Sequential, advice: Advice::Normal, passes: 1, region: "f".into() } });
            }
        }
        c => {
            let (a, f) = match c { "anon1.5" => (Some(73728), None), "file2.0" => (None, Some(98304)), _ => (Some(36864), Some(36864)) };
            phases.push(Phase { name: "populate".into(), workload: ws(a, f, true, 0) });
            for i in 0..4 { phases.push(Phase { name: format!("acc{i}"), workload: ws(a, f, false, 60000) }); }
        }
    }
    let setup = Setup {
        machine: Machine {
            cpus: 1,
            nodes: vec![Node { memory: 256 << 20, reserved: 0, movable: 0, zones: vec![
                Zone { name: "DMA".into(), present: 3998, managed: 3840, free: 3808 },
                Zone { name: "DMA32".into(), present: 61399, managed: 51806, free: 43425 } ] }],
            disks: vec![Disk { name: "d".into(), model: std::env::var("DISK").unwrap_or("ssd".into()), read_latency_ns: None, write_latency_ns: None, read_bandwidth: None, write_bandwidth: None, queue_depth: None, faults: Default::default() }],
            swap: Some(Swap { disk: 0, size: 4 << 30, full_after_pages: None }),
        },
        sysctls: vec![("vm.page-cluster".into(), "0".into()), ("vm.fault_around_bytes".into(), "4096".into()), ("vm.swappiness".into(), "60".into())],
        policies: BTreeMap::new(),
        groups: vec![],
        files: vec![File { name: "f".into(), size: 98304 * 4096, sparse: case == "seq2x", disk: 0 }],
        tasks: vec![Task { name: name.into(), group: None, start: Start { delay_ns: 0, after: None }, background: false, nice: 0, loops: 1, phases }],
        measure: None,
        time_limit_ns: 3_600_000_000_000,
    };
    let v = Variant { name: "x".into(), setup };
    let t = std::time::Instant::now();
    let r = run(&case, &v, 1, &RunOptions::default()).unwrap();
    eprintln!("real {:?} virtual {} s digest {:x} notes {:?}", t.elapsed(), r.elapsed_ns as f64 / 1e9, r.digest, r.notes);
    let mut errs = vec![];
    for line in csv.lines().filter(|l| l.starts_with(&format!("{case},"))) {
        let f: Vec<&str> = line.split(',').collect();
        let key = match f[4] {
            "pgscan_total" | "pgsteal_total" => String::new(),
            k => format!("{}.{}", f[3], k.trim_start_matches("trace_")),
        };
        let get = |k: &str| r.metrics.get(&format!("{}.{k}", f[3])).map(|m| m.value);
        let ours = match f[4] {
            "pgscan_total" => get("pgscan_kswapd").map(|a| a + get("pgscan_direct").unwrap()),
            "pgsteal_total" => get("pgsteal_kswapd").map(|a| a + get("pgsteal_direct").unwrap()),
            _ => r.metrics.get(&key).map(|m| m.value),
        };
        let Some(ours) = ours else { continue };
        let mean: f64 = f[6].parse().unwrap();
        let sd: f64 = f[7].parse().unwrap_or(0.0);
        if mean < 1.0 && ours < 1.0 { continue; }
        let ratio = ours / mean;
        let judged = mean > 1000.0 && !f[4].contains("direct") && !f[4].contains("kswapd") && !f[4].contains("alloc_");
        if judged { errs.push((ratio - 1.0).abs()); }
        println!("{:<18} {:<30} {:>12.0} ±{:<8.0} {:>12.0} {:>7.3} {}", f[3], f[4], mean, sd, ours, ratio, if judged && !(0.95..=1.05).contains(&ratio) { "<<<" } else { "" });
    }
    errs.sort_by(|a, b| a.total_cmp(b));
    println!("median err {:?} worst {:?} n {}", errs.get(errs.len() / 2), errs.last(), errs.len());
}
