//! Service times of the guest's disks, from /proc/diskstats.
//!
//! QEMU's disks are files of the host, so their speed is that of the host. While a disk
//! works, the kernel lets the task sleep and kswapd run. The simulator's disks therefore
//! use the mean times of the guest's, spread as the guest's are if that is known.
//!
//! Linux: Documentation/admin-guide/iostats.rst. Fields after the name: reads, reads merged,
//! sectors read, milliseconds reading, writes, writes merged, sectors written, milliseconds
//! writing.

use crate::disk_latencies::{shape, DiskLatencies};
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::{KeyNames, MetricKey, Scope};
use pagetide_scenario::model::{swap_serial, DiskSetup, Setup};
use pagetide_scenario::record::{Metric, Unit};
use std::collections::BTreeMap;

/// Number of requests of a disk, and their total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskTimes {
    pub reads: u64,
    pub read_ms: u64,
    pub writes: u64,
    pub write_ms: u64,
}

/// Parses /proc/diskstats, by device. Ignores lines in another format.
pub fn parse(text: &str) -> BTreeMap<String, DiskTimes> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words.get(index)?.parse().ok();
        let times = DiskTimes {
            reads: number(3)?,
            read_ms: number(6)?,
            writes: number(7)?,
            write_ms: number(10)?,
        };
        Some(((*words.get(2)?).to_owned(), times))
    };
    text.lines().filter_map(line).collect()
}

/// Name of the guest's device number `index`, in QEMU's order; `None` if the machine has no slot
/// for it.
fn device(index: usize) -> Option<String> {
    (index < 26).then(|| format!("vd{}", char::from(b'a' + index as u8)))
}

/// Adds each disk's activity between two readings of the file to a run's metrics; `serials` in
/// QEMU's order.
pub fn add_to(
    metrics: &mut BTreeMap<String, Metric>,
    names: &KeyNames,
    serials: &[&str],
    (before, after): (&str, &str),
) {
    let (before, after) = (parse(before), parse(after));
    for (index, serial) in serials.iter().enumerate() {
        let Some(device) = device(index) else { break };
        let Some(end) = after.get(&device) else { continue };
        let begin = before.get(&device).copied().unwrap_or_default();
        let mut put = |metric: &MetricDecl, begin: u64, end: u64, scale: f64| {
            let value = end.saturating_sub(begin) as f64 * scale;
            metrics.insert(text(names, serial, metric), Metric::new(value, metric.unit));
        };
        put(declared::READS, begin.reads, end.reads, 1.0);
        put(declared::READ_TIME, begin.read_ms, end.read_ms, 1e-3);
        put(declared::WRITES, begin.writes, end.writes, 1.0);
        put(declared::WRITE_TIME, begin.write_ms, end.write_ms, 1e-3);
    }
}

fn text(names: &KeyNames, serial: &str, metric: &MetricDecl) -> String {
    let scope = Scope::Disk(serial.to_owned());
    names.text(&MetricKey { scope, name: metric.name.to_owned().into() })
}

/// Sets the disks of `setup` to the mean times of these metrics, over all runs. Each swap
/// area of the guest is a separate disk, and so it becomes one here: swap I/O does not wait for file I/O, and
/// may be several times as fast.
pub fn apply(
    metrics: &BTreeMap<String, (Unit, Vec<Option<f64>>)>,
    latencies: &DiskLatencies,
    setup: &mut Setup,
) {
    let names = KeyNames::of(setup);
    let disks = &mut setup.machine.disks;
    let mut serials: Vec<Vec<String>> =
        (0..disks.len()).map(|index| vec![format!("disk{index}")]).collect();
    for (at, swap) in setup.machine.swap.iter_mut().enumerate() {
        let area = DiskSetup { name: swap_serial(at), ..disks[swap.disk].clone() };
        serials.push(vec![swap_serial(at), format!("disk{}", swap.disk)]);
        swap.disk = disks.len();
        disks.push(area);
    }
    for (disk, serials) in disks.iter_mut().zip(&serials) {
        let sum = |serial: &String, metric: &MetricDecl| -> f64 {
            let of = metrics.get(&text(&names, serial, metric));
            of.into_iter().flat_map(|(_, values)| values).flatten().sum()
        };
        // If swap reads are missing or too short to measure, the area takes as long as its disk.
        let mean_ns = |requests: &MetricDecl, time: &MetricDecl| {
            serials.iter().find_map(|serial| {
                let (requests, seconds) = (sum(serial, requests), sum(serial, time));
                (requests >= 1.0 && seconds > 0.0)
                    .then(|| (seconds / requests * 1e9).round() as u64)
            })
        };
        disk.read_latency_ns = mean_ns(declared::READS, declared::READ_TIME);
        disk.write_latency_ns = mean_ns(declared::WRITES, declared::WRITE_TIME);
        let of = |what| serials.iter().find_map(|serial| shape(latencies, serial, what));
        disk.read_shape = of("read").filter(|_| disk.read_latency_ns.is_some());
        disk.write_shape = of("write").filter(|_| disk.write_latency_ns.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::setup;

    const BEFORE: &str = " 254  0 vda 10 0 80 5 0 0 0 0 0 5 5 0 0 0 0 0 0\nnonsense\n";
    const AFTER: &str = "\
 254  0 vda 110 7 880 25 4 0 32 8 0 5 5 0 0 0 0 0 0
 254 16 vdb 1 0 8 0 200 9 1600 30 0 5 5 0 0 0 0 0 0
";

    #[test]
    fn times_are_differences() {
        let mut metrics = BTreeMap::new();
        add_to(&mut metrics, &KeyNames::default(), &["disk0", "swap"], (BEFORE, AFTER));
        let value = |key: &str| metrics[key].value;
        assert_eq!(value("disk.disk0.reads"), 100.0);
        assert_eq!(value("disk.disk0.read_time"), 0.020);
        assert_eq!(value("disk.swap.writes"), 200.0);
        assert_eq!(value("disk.swap.write_time"), 0.030);
        for end in 0..AFTER.len() {
            parse(&AFTER[..end]);
        }
    }

    #[test]
    fn the_swap_area_is_as_fast_as_its_own_disk() {
        let text = "[machine]\nmemory = \"64MiB\"\nswap = \"64MiB\"\n[[task]]\nname = \"a\"\n[[task.phase]]\n\
                    name = \"b\"\nworkload = \"touch\"\nsize = \"1MiB\"\n";
        let mut setup = setup(text);
        let metric = |unit, value| (unit, vec![Some(value), Some(value)]);
        let metrics = BTreeMap::from([
            ("disk.disk0.reads".to_owned(), metric(Unit::Count, 100.0)),
            ("disk.disk0.read_time".to_owned(), metric(Unit::Seconds, 0.020)),
            ("disk.swap.reads".to_owned(), metric(Unit::Count, 300.0)),
            ("disk.swap.read_time".to_owned(), metric(Unit::Seconds, 0.015)),
        ]);
        let swap_out = [
            ("disk.disk0.writes", Unit::Count, 10.0),
            ("disk.disk0.write_time", Unit::Seconds, 0.001),
        ];
        let swap_out = swap_out.map(|(key, unit, value)| (key.to_owned(), metric(unit, value)));
        let latencies = DiskLatencies::from([
            ("disk0 read".to_owned(), BTreeMap::from([(100_000, 1), (300_000, 1)])),
            ("swap read".to_owned(), BTreeMap::from([(7, 1)])),
        ]);
        apply(&metrics.into_iter().chain(swap_out).collect(), &latencies, &mut setup);
        let shapes: Vec<_> = setup.machine.disks.iter().map(|disk| &disk.read_shape).collect();
        assert_eq!(shapes[0].as_ref().map(|shape| shape.mean_ns()), Some(200_000));
        assert_eq!(shapes[1].as_ref().map(|shape| shape.mean_ns()), Some(7), "scaled later");
        assert_eq!(setup.machine.disks[1].write_shape, None);
        let times: Vec<_> = setup.machine.disks.iter().map(|disk| disk.read_latency_ns).collect();
        assert_eq!(times, [Some(200_000), Some(50_000)]);
        assert_eq!(setup.machine.disks[1].write_latency_ns, Some(100_000), "as its disk");
        assert_eq!(setup.machine.swap[0].disk, 1);
    }
}
