//! The `.ptt` format: the reader returns the records that were written, and detects any damage.

use std::path::PathBuf;

use pagetide_trace::format::MAX_BLOCK_RECORDS;
use pagetide_trace::replay::{COMPUTE_GRAIN_NS, INSTRUCTIONS_PER_NS};
use pagetide_trace::{
    AccessKinds, Clock, FileType, FoldWindow, Format, Header, Record, RegionKind, Replay,
    ReplayStep, Totals, TraceError, TraceInfo, TracePart, TracePosition, TraceProblem, TraceReader,
    TraceRegion, TraceWriter,
};
use proptest::prelude::*;

const WINDOW: FoldWindow = FoldWindow { pages: 64, time: 1000 };

fn anon(pages: u64) -> TraceRegion {
    TraceRegion { name: "anon".into(), kind: RegionKind::Anon, pages, start: 0x4000 }
}

fn file(key: u64, executable: bool, pages: u64) -> TraceRegion {
    TraceRegion {
        name: "/bin/x".into(),
        kind: RegionKind::File { key, executable },
        pages,
        start: 0,
    }
}

fn header(clock: Clock, regions: Vec<TraceRegion>) -> Header {
    Header::new(clock, WINDOW, "a test".into(), regions)
}

fn record(region: u32, page: u64, kinds: AccessKinds, references: u64, time: u64) -> Record {
    Record { region, page, kinds, references, time, bytes: 0 }
}

fn write(header: &Header, records: &[Record], tail: u64) -> (Vec<u8>, Totals) {
    let mut writer = TraceWriter::new(Vec::new(), header).unwrap();
    for record in records {
        writer.push(record).unwrap();
    }
    writer.finish(tail).unwrap()
}

fn read(bytes: &[u8]) -> Result<(Header, Vec<Record>, Totals), TraceError> {
    let mut reader = TraceReader::from_reader(bytes)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    assert_eq!(reader.next_record(), Ok(None), "the end stays the end");
    let totals = *reader.totals().expect("it came to the end");
    Ok((reader.header().clone(), records, totals))
}

/// A small trace with every kind of region and access.
fn small() -> (Header, Vec<Record>, Vec<u8>) {
    let header = header(Clock::Instructions, vec![file(7, true, 10), anon(300), file(8, false, 5)]);
    let records = vec![
        record(0, 3, AccessKinds::EXECUTE, 12, 0),
        record(1, 299, AccessKinds::WRITE, 1, 5000),
        record(2, 0, AccessKinds::READ, u64::from(u32::MAX), 1),
        record(1, 0, AccessKinds::READ.union(AccessKinds::WRITE), 7, 123_456),
        record(0, 3, AccessKinds::EXECUTE.union(AccessKinds::READ), 2, 0),
    ];
    let (bytes, _) = write(&header, &records, 99);
    (header, records, bytes)
}

/// A temporary file, removed on drop.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, bytes: &[u8]) -> TempFile {
        let path = std::env::temp_dir().join(format!("pagetide-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        TempFile(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn small_trace_comes_back() {
    let (header, records, bytes) = small();
    let (header_read, records_read, totals) = read(&bytes).unwrap();
    assert_eq!(header_read, header);
    assert_eq!(records_read, records);
    assert_eq!(totals.records, 5);
    assert_eq!(totals.references, 12 + 1 + u64::from(u32::MAX) + 7 + 2);
    assert_eq!(totals.distinct_pages, 4);
    assert_eq!(totals.time, 5000 + 1 + 123_456 + 99);
    assert_eq!(totals.writes, 2);
}

#[test]
fn empty_trace_comes_back() {
    let header = header(Clock::Nanoseconds, Vec::new());
    let (bytes, totals) = write(&header, &[], 5);
    assert_eq!(read(&bytes).unwrap(), (header, Vec::new(), totals));
    assert_eq!(totals.time, 5);
}

#[test]
fn many_blocks_come_back() {
    let header = header(Clock::Instructions, vec![anon(1000)]);
    let records: Vec<_> = (0..3 * MAX_BLOCK_RECORDS as u64 + 7)
        .map(|n| record(0, n * 7919 % 1000, AccessKinds::WRITE, 1 + n % 5, n % 300))
        .collect();
    let (bytes, totals) = write(&header, &records, 0);
    assert_eq!(totals.distinct_pages, 1000);
    assert_eq!(read(&bytes).unwrap().1, records);
}

#[test]
fn truncation_names_the_byte_at_which_the_file_ends() {
    let (_, _, bytes) = small();
    let path = TempFile::new("truncated.ptt", &[]);
    for len in 0..bytes.len() {
        let error = read(&bytes[..len]).unwrap_err();
        assert_eq!(error.byte(), Some(len as u64), "cut at {len}: {error}");
        if len > 0 {
            assert!(
                matches!(error.problem, TraceProblem::Truncated { .. }),
                "cut at {len}: {error}"
            );
        }
        std::fs::write(&path.0, &bytes[..len]).unwrap();
        let quick = TraceInfo::read_summary(&path.0).unwrap_err();
        assert_eq!(quick, error.in_file(&path.0), "Info::read says the same");
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (_, _, bytes) = small();
    for index in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[index] ^= 1 << bit;
            let error = read(&damaged).unwrap_err();
            let byte = error.byte().expect("an error of a file's content has a place");
            assert!(byte <= bytes.len() as u64);
        }
    }
}

#[test]
fn blocks_cannot_be_left_out_or_exchanged() {
    let header = header(Clock::Instructions, vec![anon(16)]);
    let block = |n: u64| {
        (0..MAX_BLOCK_RECORDS as u64).map(move |i| record(0, (i * n) % 16, AccessKinds::READ, 1, n))
    };
    let records: Vec<_> = block(1).chain(block(3)).collect();
    let (bytes, _) = write(&header, &records, 0);
    let starts: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| &bytes[at..at + 4] == b"PTTB").collect();
    let footer = (0..bytes.len() - 4).rfind(|&at| &bytes[at..at + 4] == b"PTTF").unwrap();
    let [first, second] = starts[..] else { panic!("{starts:?}") };
    let swapped =
        [&bytes[..first], &bytes[second..footer], &bytes[first..second], &bytes[footer..]].concat();
    let error = read(&swapped).unwrap_err();
    assert!(
        matches!(error.problem, TraceProblem::Malformed { part: TracePart::Footer, .. }),
        "{error}"
    );
    let left_out = [&bytes[..first], &bytes[second..]].concat();
    assert!(read(&left_out).is_err());
}

#[test]
fn bytes_after_the_end_are_refused() {
    let (_, _, mut bytes) = small();
    let len = bytes.len() as u64;
    bytes.push(0);
    assert_eq!(read(&bytes), Err(TraceError::at_byte(len, TraceProblem::Trailing)));
}

#[test]
fn other_files_are_named_for_what_they_look_like() {
    for (bytes, looks_like) in [
        (b"".as_slice(), FileType::Empty),
        (b"==12== Lackey, an example\n", FileType::Recording(Format::Lackey)),
        (b"I  04016b80,3\n", FileType::Recording(Format::Lackey)),
        (b"time,id,size\n1,2,3\n", FileType::Text),
        (b"\x28\xb5\x2f\xfd....", FileType::Zstd),
        (b"\x1f\x8b\x08\x00....", FileType::Gzip),
        (b"\0\0\0\0", FileType::Binary),
    ] {
        let error = read(bytes).unwrap_err();
        assert_eq!(error, TraceError::at_byte(0, TraceProblem::NotATrace { looks_like }));
    }
}

#[test]
fn a_later_version_is_refused_by_number() {
    let (_, _, mut bytes) = small();
    bytes[8] = 3;
    let error = read(&bytes).unwrap_err();
    assert_eq!(error, TraceError::at_byte(8, TraceProblem::Version { found: 3 }));
    assert!(error.to_string().contains("hint: this program reads versions up to 2"), "{error}");
}

#[test]
fn an_error_stays() {
    let (_, _, bytes) = small();
    let mut reader = TraceReader::from_reader(&bytes[..bytes.len() - 60]).unwrap();
    let mut first = None;
    for _ in 0..10 {
        if let Err(error) = reader.next_record() {
            assert_eq!(*first.get_or_insert(error.clone()), error);
        }
    }
    assert!(first.is_some());
    assert_eq!(reader.totals(), None);
}

#[test]
fn a_missing_file_is_named() {
    let error = TraceReader::open("/nonexistent/x.ptt").err().unwrap();
    assert_eq!(error.place, TracePosition::NoPosition);
    assert!(error.to_string().starts_with("/nonexistent/x.ptt: "), "{error}");
}

#[test]
fn info_sums_and_slices() {
    let header = header(Clock::Instructions, vec![anon(64)]);
    // 32 pages in the first half of the time, the same page 32 times in the second half.
    let mut records: Vec<_> = (0..32).map(|n| record(0, n, AccessKinds::READ, 1, 10)).collect();
    records.extend((0..32).map(|_| record(0, 5, AccessKinds::WRITE, 2, 10)));
    let (bytes, totals) = write(&header, &records, 0);
    let path = TempFile::new("info.ptt", &bytes);
    let quick = TraceInfo::read_summary(&path.0).unwrap();
    assert_eq!((quick.totals, quick.bytes), (totals, bytes.len() as u64));
    assert_eq!(quick.header, header);
    assert!(quick.timeline.is_empty());
    let full = TraceInfo::scan(&path.0).unwrap();
    assert_eq!(full.timeline.iter().map(|slice| slice.new_pages).sum::<u64>(), 32);
    assert_eq!(full.timeline.iter().map(|slice| slice.records).sum::<u64>(), 64);
    assert_eq!(full.timeline.last().unwrap().pages, 1);
    assert_eq!(TraceInfo { timeline: Vec::new(), ..full }, quick);
}

#[test]
fn the_shipped_trace_is_as_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/traces/cc1-zpipe.ptt");
    let info = TraceInfo::scan(path).unwrap();
    let expected = Totals {
        records: 126_131,
        references: 319_964_247,
        distinct_pages: 4952,
        time: 230_284_845,
        writes: 32_278,
        digest: 0xe015_aaea_af67_0c01,
    };
    assert_eq!(info.totals, expected);
    assert_eq!((info.bytes, info.header.regions.len()), (447_086, 42));
    assert_eq!(info.header.clock, Clock::Instructions);
    assert_eq!(info.header.window, FoldWindow { pages: 512, time: 2_000_000 });
}

fn replay(bytes: &[u8], name: &str, passes: u32) -> Vec<ReplayStep> {
    let path = TempFile::new(name, bytes);
    let mut replay = Replay::open(&path.0, passes).unwrap();
    let mut steps = Vec::new();
    while let Some(step) = replay.next_step().unwrap() {
        steps.push(step);
    }
    assert_eq!(replay.next_step(), Ok(None));
    steps
}

#[test]
fn replay_maps_computes_and_accesses() {
    let (_, _, bytes) = small();
    let code = RegionKind::File { key: 7, executable: true };
    let data = RegionKind::File { key: 8, executable: false };
    let map = |region, kind, pages| ReplayStep::Map { region, kind, pages };
    let access = |region, page, write| ReplayStep::Access { region, page, write };
    let steps = replay(&bytes, "replay.ptt", 1);
    let expected = [
        map(0, code, 10),
        map(1, RegionKind::Anon, 300),
        map(2, data, 5),
        access(0, 3, false),
        ReplayStep::Compute { ns: 2500 },
        access(1, 299, true),
        // One instruction is below the grain; its time goes into the next `Compute`.
        access(2, 0, false),
        ReplayStep::Compute { ns: (123_456 + 1) / INSTRUCTIONS_PER_NS },
        access(1, 0, true),
        access(0, 3, false),
        ReplayStep::Compute { ns: (99 + 1) / INSTRUCTIONS_PER_NS },
    ];
    assert_eq!(steps, expected);
}

#[test]
fn replay_folds_pages_into_larger_ones() {
    let (_, _, bytes) = small();
    let path = TempFile::new("folded.ptt", &bytes);
    for (shift, sizes, pages) in [
        (0, [10, 300, 5], [3, 299, 0, 0, 3]),
        (2, [3, 75, 2], [0, 74, 0, 0, 0]),
        (4, [1, 19, 1], [0, 18, 0, 0, 0]),
    ] {
        let mut replay = Replay::open(&path.0, 1).unwrap().folded(shift);
        let (mut mapped, mut accessed) = (Vec::new(), Vec::new());
        while let Some(step) = replay.next_step().unwrap() {
            match step {
                ReplayStep::Map { pages, .. } => mapped.push(pages),
                ReplayStep::Access { region, page, .. } => {
                    assert!(page < mapped[region as usize], "{shift}");
                    accessed.push(page);
                }
                _ => {}
            }
        }
        assert_eq!((mapped.as_slice(), accessed.as_slice()), (&sizes[..], &pages[..]));
    }
}

#[test]
fn readers_and_replays_can_go_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<TraceReader>();
    is_send::<Replay>();
    is_send::<TraceWriter<Vec<u8>>>();
}

#[test]
fn replay_repeats_the_records_but_not_the_maps() {
    let (_, _, bytes) = small();
    let count = |steps: &[ReplayStep], wanted: fn(&ReplayStep) -> bool| {
        steps.iter().filter(|step| wanted(step)).count()
    };
    for passes in [0, 1, 3] {
        let steps = replay(&bytes, &format!("passes{passes}.ptt"), passes);
        let maps = count(&steps, |step| matches!(step, ReplayStep::Map { .. }));
        let accesses = count(&steps, |step| matches!(step, ReplayStep::Access { .. }));
        assert_eq!(maps, if passes > 0 { 3 } else { 0 });
        assert_eq!(accesses, 5 * passes as usize);
        let computed: u64 = steps
            .iter()
            .map(|step| if let ReplayStep::Compute { ns } = step { *ns } else { 0 })
            .sum();
        let instructions = (5000 + 1 + 123_456 + 99) * u64::from(passes);
        assert_eq!(computed, instructions / INSTRUCTIONS_PER_NS);
    }
}

fn steps_of(mut replay: Replay) -> (Vec<ReplayStep>, Replay) {
    let mut steps = Vec::new();
    while let Some(step) = replay.next_step().unwrap() {
        steps.push(step);
    }
    (steps, replay)
}

#[test]
fn a_replay_from_memory_is_one_from_the_file() {
    let (_, _, bytes) = small();
    for (passes, shift) in [(1, 0), (2, 0), (3, 4)] {
        let path = TempFile::new(&format!("tape{passes}.ptt"), &bytes);
        let open = || Replay::open(&path.0, passes).unwrap().folded(shift);
        let first = open();
        assert!(first.tape().is_none(), "not read to its end yet");
        let (wanted, first) = steps_of(first);
        let tape = first.tape().expect("short enough to be cached");
        let second = open();
        assert!(std::sync::Arc::ptr_eq(&tape, &second.tape().unwrap()), "the file was read again");
        assert_eq!(steps_of(second).0, wanted);
        // `tape` still keeps it in the cache.
        drop(first);
        assert!(open().tape().is_some());
        drop(tape);
        assert!(open().tape().is_none(), "not in use, but still cached");
    }
}

#[test]
fn a_file_that_was_changed_is_read_again() {
    let (header, records, bytes) = small();
    let path = TempFile::new("changed.ptt", &bytes);
    let (wanted, first) = steps_of(Replay::open(&path.0, 1).unwrap());
    let (shorter, _) = write(&header, &records[..records.len() - 1], 99);
    std::fs::write(&path.0, shorter).unwrap();
    let (steps, _) = steps_of(Replay::open(&path.0, 1).unwrap());
    assert_eq!(steps.len(), wanted.len() - 1);
    drop(first);
}

#[test]
fn replay_of_no_records_ends() {
    let header = header(Clock::Instructions, vec![anon(1)]);
    let (bytes, _) = write(&header, &[], 10 * COMPUTE_GRAIN_NS);
    let steps = replay(&bytes, "none.ptt", u32::MAX);
    assert_eq!(steps.len(), 2, "the map and the time: {steps:?}");
}

#[test]
fn replay_sleeps_by_the_wall_clock() {
    let header = header(Clock::Nanoseconds, vec![file(1, false, 4)]);
    let records = [record(0, 0, AccessKinds::READ, 1, 3), record(0, 1, AccessKinds::READ, 1, 0)];
    let (bytes, _) = write(&header, &records, 0);
    let steps = replay(&bytes, "sleep.ptt", 1);
    assert_eq!(steps[1], ReplayStep::Sleep { ns: 3 });
    assert_eq!(steps.len(), 4);
}

#[test]
fn replay_of_a_damaged_trace_is_an_error() {
    let (_, _, mut bytes) = small();
    let middle = bytes.len() - 70;
    bytes[middle] ^= 1;
    let path = TempFile::new("damaged.ptt", &bytes);
    let mut replay = Replay::open(&path.0, 2).unwrap();
    let error = loop {
        match replay.next_step() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the damage went unnoticed"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.file.as_deref(), Some(path.0.as_path()));
    assert!(error.byte().is_some());
}

prop_compose! {
    fn any_region()(
        name in "[a-z/. ]{0,12}",
        key in any::<u64>(),
        kind in 0..3,
        pages in prop_oneof![1u64..100, 1u64..1 << 32],
        start in any::<u64>(),
    ) -> TraceRegion {
        let kind = match kind {
            0 => RegionKind::Anon,
            kind => RegionKind::File { key, executable: kind == 2 },
        };
        TraceRegion { name, kind, pages, start }
    }
}

prop_compose! {
    fn any_trace()(
        clock in prop_oneof![Just(Clock::Instructions), Just(Clock::Nanoseconds)],
        regions in prop::collection::vec(any_region(), 1..4),
        source in ".{0,40}",
        draws in prop::collection::vec(
            (any::<u32>(), any::<u64>(), 1u8..8, 1u64..1 << 40, 0u64..1 << 40), 0..200),
        tail in 0u64..1 << 40,
    ) -> (Header, Vec<Record>, u64) {
        let records = draws
            .into_iter()
            .map(|(region, page, kinds, references, time)| {
                let region = region % regions.len() as u32;
                let page = page % regions[region as usize].pages;
                let bytes = if clock == Clock::Nanoseconds { time % 7000 } else { 0 };
                let kinds = AccessKinds::from_bits(kinds).unwrap();
                Record { bytes, ..record(region, page, kinds, references, time) }
            })
            .collect();
        (Header::new(clock, WINDOW, source, regions), records, tail)
    }
}

proptest! {
    #[test]
    fn any_trace_comes_back((header, records, tail) in any_trace()) {
        let (bytes, totals) = write(&header, &records, tail);
        let read = read(&bytes).unwrap();
        let distinct: std::collections::BTreeSet<_> =
            records.iter().map(|record| (record.region, record.page)).collect();
        prop_assert_eq!(totals.distinct_pages, distinct.len() as u64);
        prop_assert_eq!(read, (header, records, totals));
    }

    #[test]
    fn any_damage_is_noticed(
        (header, records, tail) in any_trace(),
        at in any::<prop::sample::Index>(),
        change in 1u8..=255,
        cut in any::<prop::sample::Index>(),
    ) {
        let (bytes, _) = write(&header, &records, tail);
        let mut damaged = bytes.clone();
        damaged[at.index(bytes.len())] ^= change;
        prop_assert!(read(&damaged).is_err());
        let cut = cut.index(bytes.len());
        prop_assert_eq!(read(&bytes[..cut]).unwrap_err().byte(), Some(cut as u64));
    }

    #[test]
    fn no_input_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&bytes).is_err());
    }
}
