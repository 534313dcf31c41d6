use pagetide_scenario::load::{load, Overrides};
use pagetide_sim::{run, RunOptions};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut o = Overrides::default();
    for a in &args[3..] {
        let (k, v) = a.split_once('=').unwrap();
        o.sets.push((k.into(), v.into()));
    }
    let s = load(args[1].as_ref(), &o).unwrap_or_else(|e| {
        eprintln!("{e}");
        std::process::exit(2)
    });
    let keys: Vec<String> = if args[2] == "rows" {
        s.rows.clone()
    } else {
        args[2].split(',').map(String::from).collect()
    };
    for v in &s.variants {
        let t = std::time::Instant::now();
        let mut all = vec![];
        for seed in 1..=10 {
            all.push(run(&s.name, v, seed, &RunOptions::default()).unwrap());
        }
        eprintln!(
            "{} real {:?} virtual {} {:?}",
            v.name,
            t.elapsed() / 3,
            all[0].elapsed_ns as f64 / 1e9,
            all[0].notes
        );
        for k in &keys {
            for (m, _) in all[0].metrics.iter().filter(|(m, _)| {
                if k.ends_with('*') {
                    m.starts_with(k.trim_end_matches('*'))
                } else {
                    *m == k
                }
            }) {
                let vals: Vec<f64> = all.iter().map(|r| r.metrics[m].value).collect();
                if vals.iter().all(|v| *v == 0.0) && k.ends_with('*') {
                    continue;
                }
                println!("{:<12} {:<44} {:?}", v.name, m, vals);
            }
        }
    }
}
