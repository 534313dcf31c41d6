//! Tests of disks against their data sheets, and of the invariants of the disk model.

use super::*;
use pagetide_core::units::PAGE_SIZE;
use pagetide_scenario::model::latency_shape::{LatencyPiece, LatencyShape};
use pagetide_scenario::names::{self, NameSet};
use std::sync::Arc;

const SECOND: Nanos = 1_000_000_000;

fn described(model: &str) -> model::DiskSetup {
    model::DiskSetup::new("sda", names::DiskModel::from_name(model).unwrap())
}

fn disk(model: &str) -> Disk {
    Disk::new(&described(model), 1)
}

fn read(id: u64, offset: u64, pages: u32) -> DiskRequest {
    DiskRequest { id, kind: IoKind::Read, offset, pages, submitter: Submitter::Reader, plugged: 0 }
}

fn write(id: u64, offset: u64, pages: u32) -> DiskRequest {
    DiskRequest {
        id,
        kind: IoKind::Write,
        offset,
        pages,
        submitter: Submitter::Writeback,
        plugged: 0,
    }
}

/// Keeps `depth` requests outstanding until `total` are done; returns the completions in order.
fn closed_loop(
    disk: &mut Disk,
    depth: u64,
    total: u64,
    mut request: impl FnMut(u64) -> DiskRequest,
) -> Vec<DiskCompletion> {
    let mut issued = 0;
    let mut completions = Vec::new();
    for _ in 0..depth.min(total) {
        disk.submit(0, request(issued));
        issued += 1;
    }
    while let Some(at) = disk.next_completion() {
        while let Some(completion) = disk.pop_completion(at) {
            assert_eq!(completion.at, at);
            completions.push(completion);
            if issued < total {
                disk.submit(at, request(issued));
                issued += 1;
            }
        }
    }
    assert!(disk.is_idle());
    assert_eq!(completions.len() as u64, total);
    completions
}

fn per_second(completions: &[DiskCompletion]) -> u64 {
    completions.len() as u64 * SECOND / completions.last().expect("some").at
}

/// Offsets far apart from each other.
fn scattered(i: u64) -> u64 {
    pagetide_scenario::draws::prng::mix64(i + 1) % 200_000_000
}

#[track_caller]
fn assert_near(value: u64, expected: u64, percent: u64) {
    let deviation = value.abs_diff(expected);
    assert!(
        deviation * 100 <= expected * percent,
        "{value} is not within {percent} % of {expected}"
    );
}

#[test]
fn sequential_transfers_run_at_the_bandwidth() {
    for (model, bandwidth) in [("rotating", 150), ("ssd", 500), ("nvme", 3200)] {
        let done = closed_loop(&mut disk(model), 4, 2000, |i| read(i, 256 * i, 256));
        let megabytes = 2000 * 256 * PAGE_SIZE / 1_000_000;
        assert_near(megabytes * SECOND / done.last().unwrap().at, bandwidth, 3);
    }
    for (model, bandwidth) in [("ssd", 490), ("nvme", 1050)] {
        let done = closed_loop(&mut disk(model), 4, 2000, |i| write(i, 256 * i, 256));
        let megabytes = 2000 * 256 * PAGE_SIZE / 1_000_000;
        assert_near(megabytes * SECOND / done.last().unwrap().at, bandwidth, 3);
    }
}

/// A page of 64 KiB takes as long as 16 consecutive pages of 4 KiB, at any position.
#[test]
fn larger_pages_are_as_many_bytes() {
    for model in names::DiskModel::ALL.iter().map(|model| model.name()) {
        let small = closed_loop(&mut disk(model), 1, 50, |i| read(i, 16 * (scattered(i) / 16), 16));
        let mut large = disk(model).with_page_size(PageSize::Kib64);
        let done = closed_loop(&mut large, 1, 50, |i| read(i, scattered(i) / 16, 1));
        let times = |done: &[DiskCompletion]| -> Vec<Nanos> { done.iter().map(|c| c.at).collect() };
        // A seek counts in whole pages.
        for (a, b) in times(&small).into_iter().zip(times(&done)) {
            assert!(a.abs_diff(b) <= a / 10_000, "{model}: {a}, {b}");
        }
        assert_eq!(large.stats().read_bytes, 50 << 16);
    }
}

#[test]
fn random_requests_at_depth_one_take_the_latency_of_the_data_sheet() {
    for (model, read_us, write_us) in [("ssd", 110, 52), ("nvme", 85, 20)] {
        let reads = closed_loop(&mut disk(model), 1, 2000, |i| read(i, scattered(i), 1));
        assert_near(reads.last().unwrap().at / 2000, read_us * 1000, 2);
        // A second write waits for the recovery of the first, so check only first writes.
        let mut idle = disk(model);
        let mut at = 0;
        for i in 0..1000 {
            idle.submit(at, write(i, scattered(i), 1));
            let done = idle.next_completion().unwrap();
            assert_near(done - at, write_us * 1000, 11);
            assert!(idle.pop_completion(done).is_some());
            at = done + SECOND;
        }
    }
}

#[test]
fn random_reads_scale_with_depth_up_to_the_data_sheet() {
    for (model, most, depths) in [("ssd", 72_000, [1, 2, 4]), ("nvme", 490_000, [1, 8, 32])] {
        let rate = |depth| {
            per_second(&closed_loop(&mut disk(model), depth, 20_000, |i| read(i, scattered(i), 1)))
        };
        let one = rate(1);
        for depth in depths {
            assert_near(rate(depth), one * depth, 20);
        }
        assert_near(rate(128), most, 2);
    }
    let writes = closed_loop(&mut disk("ssd"), 64, 20_000, |i| write(i, scattered(i), 1));
    assert_near(per_second(&writes), 33_000, 2);
}

#[test]
fn queue_depth_can_be_overridden() {
    let mut narrow = described("ssd");
    narrow.queue_depth = Some(2);
    let mut disk = Disk::new(&narrow, 1);
    for i in 0..10 {
        disk.submit(0, read(i, scattered(i), 1));
    }
    assert_eq!((disk.in_service(), disk.queued()), (2, 8));
}

#[test]
fn latency_and_bandwidth_can_be_overridden() {
    let mut slow = described("ssd");
    slow.read_latency_ns = Some(5_000_000);
    slow.read_bandwidth = Some(4096 * 1000);
    let done = closed_loop(&mut Disk::new(&slow, 1), 1, 100, |i| read(i, scattered(i), 1));
    assert_near(done.last().unwrap().at / 100, 6_000_000, 2);
}

#[test]
fn absurd_figures_do_not_overflow() {
    for model in names::DiskModel::ALL.iter().map(|model| model.name()) {
        let mut absurd = described(model);
        absurd.read_latency_ns = Some(u64::MAX);
        absurd.read_bandwidth = Some(1);
        absurd.faults.slow_ppm = 1_000_000;
        absurd.faults.slow_factor = u32::MAX;
        let request = |i| read(i, u64::from(u32::MAX) * i, u32::MAX);
        let done = closed_loop(&mut Disk::new(&absurd, 1), 2, 4, request);
        assert!(done.iter().all(|one| one.at <= 8 * preset::SERVICE_NS_MAX));
    }
}

#[test]
fn a_rotating_disk_hates_random_requests() {
    let sequential = closed_loop(&mut disk("rotating"), 1, 1000, |i| read(i, i, 1));
    let random = closed_loop(&mut disk("rotating"), 1, 1000, |i| read(i, scattered(i), 1));
    assert!(per_second(&sequential) > 15_000);
    // 8.5 ms seek and 4.16 ms rotation: about 79 a second.
    assert_near(per_second(&random), 82, 8);
    // A deep queue is faster by sorting, a small file by short distances.
    let sorted = closed_loop(&mut disk("rotating"), 64, 1000, |i| read(i, scattered(i), 1));
    assert!(per_second(&sorted) > per_second(&random) * 5 / 4);
    let local = closed_loop(&mut disk("rotating"), 1, 1000, |i| read(i, scattered(i) % 200_000, 1));
    assert!(per_second(&local) > per_second(&random) * 3 / 2);
}

#[test]
fn a_short_gap_is_read_over() {
    let gaps = closed_loop(&mut disk("rotating"), 1, 1000, |i| read(i, 4 * i, 1));
    // 16 KiB pass under the head in 109 us.
    assert_near(gaps.last().unwrap().at / 1000, 130_000, 5);
}

#[test]
fn seeks_rise_with_distance_to_the_mean() {
    let mechanics = DiskParams::ROTATING.mechanics.unwrap();
    let seek = |distance| seek_time(&mechanics, 8_500_000, distance);
    assert_eq!(seek(0), 1_000_000);
    assert_near(seek(mechanics.capacity_pages / 3), 8_500_000, 1);
    assert!(seek(1000) < seek(1_000_000) && seek(1_000_000) < seek(100_000_000));
    assert!(seek(mechanics.capacity_pages) < 15_000_000);
}

#[test]
fn instant_is_now() {
    let mut disk = disk("instant");
    for i in 0..5000 {
        disk.submit(7, read(i, scattered(i), 100));
    }
    assert_eq!(disk.next_completion(), Some(7));
    for i in 0..5000 {
        let done = disk.pop_completion(7).unwrap();
        assert_eq!((done.id, done.at), (i, 7));
    }
    assert!(disk.is_idle());
}

#[test]
fn reads_overtake_writes_but_do_not_starve_them() {
    let mut narrow = described("ssd");
    narrow.queue_depth = Some(1);
    let mut disk = Disk::new(&narrow, 1);
    for i in 0..200 {
        disk.submit(0, write(i, scattered(i), 1));
    }
    // A steady stream of reads, always two outstanding.
    disk.submit(0, read(1000, 0, 1));
    disk.submit(0, read(1001, 10, 1));
    let mut kinds = Vec::new();
    for next in 1002..1202 {
        let at = disk.next_completion().unwrap();
        let done = disk.pop_completion(at).unwrap();
        kinds.push(done.kind);
        if done.kind == IoKind::Read {
            disk.submit(at, read(next, scattered(next), 1));
        }
    }
    // At most the current batch is served before the first read.
    let first_read = kinds.iter().position(|kind| *kind == IoKind::Read);
    assert!(first_read.is_some_and(|index| index <= FIFO_BATCH as usize));
    let reads = kinds.iter().filter(|kind| **kind == IoKind::Read).count();
    assert!((50..150).contains(&reads), "{reads} reads of 200 requests");
}

#[test]
fn neighbours_submitted_together_are_one_request() {
    let mut disk = disk("ssd");
    disk.submit_all(0, (0..32).map(|i| write(i, 100 + i, 1)));
    assert_eq!((disk.in_service(), disk.queued()), (1, 0));
    let at = disk.next_completion().unwrap();
    let ids: Vec<u64> =
        std::iter::from_fn(|| disk.pop_completion(at)).map(|done| done.id).collect();
    assert_eq!(ids, (0..32).collect::<Vec<u64>>());
    let stats = disk.stats();
    assert_eq!((stats.writes, stats.merges, stats.write_bytes), (32, 31, 32 * PAGE_SIZE));
}

#[test]
fn errors_come_at_the_given_rate_and_not_by_timing() {
    let mut faulty = described("nvme");
    faulty.faults.read_error_ppm = 10_000;
    let failed = |depth| {
        let mut disk = Disk::new(&faulty, 3);
        let done = closed_loop(&mut disk, depth, 100_000, |i| {
            if i % 2 == 0 {
                read(i, scattered(i), 1)
            } else {
                write(i, scattered(i), 1)
            }
        });
        let mut ids: Vec<u64> =
            done.iter().filter(|one| one.result.is_err()).map(|one| one.id).collect();
        ids.sort_unstable();
        assert_eq!(disk.stats().read_errors, ids.len() as u64);
        assert_eq!(disk.stats().write_errors, 0);
        ids
    };
    let ids = failed(1);
    assert_near(ids.len() as u64, 500, 15);
    assert!(ids.iter().all(|id| id % 2 == 0), "only reads fail");
    assert_eq!(ids, failed(32));
}

#[test]
fn slow_requests_are_slow_and_do_not_delay_others() {
    let mut faulty = described("ssd");
    faulty.faults.slow_ppm = 10_000;
    faulty.faults.slow_factor = 100;
    let mut disk = Disk::new(&faulty, 5);
    let done = closed_loop(&mut disk, 4, 20_000, |i| read(i, scattered(i), 1));
    let slow = done.iter().filter(|one| one.at - one.submitted > 5_000_000).count() as u64;
    assert_eq!(slow, disk.stats().slow);
    assert_near(slow, 200, 25);
    // A hundred times the latency for one in a hundred: half the rate, not a hundredth of it.
    let healthy = closed_loop(&mut self::disk("ssd"), 4, 20_000, |i| read(i, scattered(i), 1));
    assert!(per_second(&done) > per_second(&healthy) * 2 / 5);
}

#[test]
fn the_seed_decides_everything() {
    for model in ["rotating", "ssd", "nvme"] {
        let mut faulty = described(model);
        faulty.faults.write_error_ppm = 5_000;
        faulty.faults.slow_ppm = 5_000;
        faulty.faults.slow_factor = 10;
        let run = |seed| {
            closed_loop(&mut Disk::new(&faulty, seed), 8, 2000, |i| {
                let kind = if i % 3 == 0 { IoKind::Write } else { IoKind::Read };
                DiskRequest {
                    id: i,
                    kind,
                    offset: scattered(i) % 100_000,
                    pages: 1 + i as u32 % 8,
                    submitter: Submitter::Reader,
                    plugged: 0,
                }
            })
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}

#[test]
fn disks_of_one_machine_differ() {
    let mut other = described("ssd");
    other.name = "sdb".into();
    let run = |disk: &model::DiskSetup| {
        closed_loop(&mut Disk::new(disk, 1), 1, 10, |i| read(i, scattered(i), 1))
    };
    assert_ne!(run(&described("ssd")), run(&other));
}

#[test]
fn counters_add_up() {
    let mut disk = disk("ssd");
    disk.submit(100, read(0, 10, 2));
    let done = disk.next_completion().unwrap();
    assert!(disk.pop_completion(done - 1).is_none());
    assert_eq!(disk.stats().busy_ns, done - 1 - 100);
    assert!(disk.pop_completion(done + 50).is_some());
    let stats = disk.stats();
    assert_eq!(stats.busy_ns, done - 100);
    assert_eq!((stats.service_ns, stats.queue_ns), (done - 100, 0));
    assert_eq!((stats.reads, stats.read_bytes, stats.writes), (1, 2 * PAGE_SIZE, 0));
}

/// Random load at random times: each request completes once, in time order, not too early. The
/// depth is respected, and the predicted next completion is correct.
#[test]
fn every_request_completes_once() {
    let mut prng = SplitMix64::new(11);
    for model in names::DiskModel::ALL.iter().map(|model| model.name()) {
        for depth in [1, 3, 32] {
            let mut described = described(model);
            described.queue_depth = Some(depth);
            described.faults.slow_ppm = 20_000;
            described.faults.slow_factor = 20;
            let mut disk = Disk::new(&described, 9);
            let (mut now, mut last) = (0, 0);
            let mut open: BTreeMap<u64, Nanos> = BTreeMap::new();
            for id in 0..3000 {
                now += prng.below(200_000);
                while let Some(due) = disk.next_completion().filter(|due| *due <= now) {
                    let done = disk.pop_completion(due).expect("predicted");
                    assert_eq!(done.at, due);
                    assert!(due >= last);
                    last = due;
                    assert_eq!(open.remove(&done.id), Some(done.submitted));
                }
                let kind = if prng.below(2) == 0 { IoKind::Read } else { IoKind::Write };
                let (offset, pages) = (prng.below(5000), 1 + prng.below(64) as u32);
                disk.submit(
                    now,
                    DiskRequest {
                        id,
                        kind,
                        offset,
                        pages,
                        submitter: Submitter::Reader,
                        plugged: 0,
                    },
                );
                open.insert(id, now);
                assert!(disk.in_service() <= depth as usize);
            }
            while let Some(due) = disk.next_completion() {
                let done = disk.pop_completion(due).expect("predicted");
                assert_eq!(open.remove(&done.id), Some(done.submitted));
            }
            assert!(open.is_empty(), "{model}: {} requests lost", open.len());
            assert_eq!(disk.stats().reads + disk.stats().writes, 3000);
        }
    }
}

fn shaped(model: &str, pieces: Vec<LatencyPiece>) -> model::DiskSetup {
    let shape = LatencyShape::new(pieces).unwrap();
    model::DiskSetup {
        read_latency_ns: Some(shape.mean_ns()),
        read_shape: Some(Arc::new(shape)),
        read_bandwidth: Some(0),
        ..described(model)
    }
}

fn piece(count: u64, low_ns: Nanos, high_ns: Nanos) -> LatencyPiece {
    LatencyPiece { count, low_ns, high_ns }
}

/// The times of reads one after the other, sorted.
fn times_of_reads(setup: &model::DiskSetup, seed: u64, total: u64) -> Vec<Nanos> {
    let done = closed_loop(&mut Disk::new(setup, seed), 1, total, |i| read(i, scattered(i), 1));
    let mut times: Vec<Nanos> = done.iter().map(|it| it.at - it.submitted).collect();
    times.sort_unstable();
    times
}

#[test]
fn reads_have_the_percentiles_of_a_distribution() {
    for model in ["instant", "nvme", "rotating"] {
        let pieces = vec![
            piece(90, 50_000, 100_000),
            piece(9, 100_000, 900_000),
            piece(1, 4_000_000, 4_000_000),
        ];
        let mut setup = shaped(model, pieces);
        // The time for which the channel recovers after a request is not part of the latency.
        setup.queue_depth = Some(1);
        let times = times_of_reads(&setup, 3, 20_000);
        let at = |percent: usize| times[times.len() * percent / 100];
        for (percent, wanted) in [(45, 70_711), (90, 100_000), (99, 4_000_000)] {
            assert_near(at(percent).max(times[times.len() * percent / 100 + 50]), wanted, 10);
        }
        let mean = times.iter().sum::<Nanos>() / times.len() as u64;
        assert_near(mean, setup.read_latency_ns.unwrap(), 3);
    }
}

#[test]
fn a_distribution_follows_the_seed_and_the_mean() {
    let mut setup = shaped("instant", vec![piece(1, 50_000, 800_000)]);
    assert_eq!(times_of_reads(&setup, 5, 100), times_of_reads(&setup, 5, 100));
    assert_ne!(times_of_reads(&setup, 5, 100), times_of_reads(&setup, 6, 100));
    // As a measured mean, from which time in plugs was subtracted.
    setup.read_latency_ns = setup.read_latency_ns.map(|ns| ns / 2);
    let (all, half) = (25_000..=400_000, times_of_reads(&setup, 5, 100));
    assert!(half.iter().all(|time| all.contains(time)), "{half:?}");
    setup.read_latency_ns = Some(0);
    assert_eq!(times_of_reads(&setup, 5, 10), [0; 10]);
}

/// A slow request does not delay the others of a deep queue; at depth 1 they wait.
#[test]
fn only_requests_behind_a_slow_one_wait_for_it() {
    let pieces = vec![piece(99, 100_000, 100_000), piece(1, 50_000_000, 50_000_000)];
    let setup = shaped("instant", pieces);
    let slow = |depth| {
        let setup = model::DiskSetup { queue_depth: Some(depth), ..setup.clone() };
        let done = closed_loop(&mut Disk::new(&setup, 1), 8, 4000, |i| read(i, scattered(i), 1));
        done.iter().filter(|it| it.at - it.submitted > 10_000_000).count()
    };
    assert!((20..=60).contains(&slow(8)), "{}", slow(8));
    assert!(slow(1) > 5 * slow(8), "{}", slow(1));
}
