//! Effects alone keep every page's bytes correct: storms in the world with bytes.

use crate::storm::Storm;
use pagetide_core::stats::vmstat::Event;

/// Events that the storms must meet to prove anything.
const MET: [Event; 9] = [
    Event::Pswpout,
    Event::Pswpin,
    Event::PgstealFile,
    Event::NrWritten,
    Event::PgmigrateSuccess,
    Event::PgmigrateFail,
    Event::ThpFaultAlloc,
    Event::ThpCollapseAlloc,
    Event::ThpSplitPage,
];

/// The seeds of this run; `STORM_SEED` and `STORM_SEEDS` choose others.
fn seeds(nr: u64) -> std::ops::Range<u64> {
    let of = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = of("STORM_SEED").unwrap_or(0);
    first..first + of("STORM_SEEDS").unwrap_or(nr)
}

#[test]
fn reads_return_the_last_write() {
    let mut nr_checked = 0;
    let mut met = [0; MET.len()];
    for seed in seeds(100) {
        let storm = Storm::new(seed).rage(10_000);
        nr_checked += storm.world.contents.nr_checked;
        let vmstat = &storm.world.machine.mem.vmstat;
        let line = MET.map(|event| vmstat.get(event));
        println!("seed {seed}: {line:?}");
        met.iter_mut().zip(line).for_each(|(all, nr)| *all += nr);
    }
    println!("{nr_checked} loads and reads; {met:?}");
    assert!(nr_checked > 100_000, "{nr_checked} loads and reads");
    for (event, nr) in MET.iter().zip(met) {
        assert!(nr > 10, "storms have met {event:?} {nr} times");
    }
}
