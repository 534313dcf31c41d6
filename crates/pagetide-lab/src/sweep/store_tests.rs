use super::*;
use crate::testing::record;
use pagetide_testing::directory::TestDir;

fn origin() -> StoreOrigin {
    let version = crate::VERSION.to_owned();
    StoreOrigin { scenario: "fake".to_owned(), digest: "d1".to_owned(), version }
}

fn row(knob: &str, seed: u64) -> SweepRow {
    let record = record("v", seed, &[("pgfault", seed as f64), ("t.walltime", 0.1)]);
    let knobs = [("vm.swappiness".to_owned(), knob.to_owned())].into();
    SweepRow { scenario_digest: "d1".to_owned(), knobs, record }
}

fn open(place: &TestDir) -> SweepStore {
    SweepStore::open(&place.directory, FILE, origin()).unwrap()
}

#[test]
fn what_is_kept_is_read_and_put_in_order() {
    let place = TestDir::new();
    let mut store = open(&place);
    for (knob, seed) in [("100", 1), ("60", 2), ("0", 1), ("60", 1)] {
        store.append(row(knob, seed)).unwrap();
    }
    drop(store);
    let mut store = open(&place);
    assert!(store.has(&row("60", 2).key()) && !store.has(&row("60", 3).key()));
    store.finish().unwrap();
    let text = place.read(FILE);
    let expected: String =
        [("0", 1), ("60", 1), ("60", 2), ("100", 1)].map(|(k, s)| row(k, s).line()).concat();
    assert_eq!(text, expected);
}

#[test]
fn a_torn_line_is_dropped_wherever_it_ends() {
    let whole = row("0", 1).line();
    let last = row("0", 2).line();
    for cut in 0..=last.len() {
        let place = TestDir::new();
        place.write(FILE, format!("{whole}{}", &last[..cut]));
        let mut store = open(&place);
        assert_eq!(store.rows().count(), if cut == last.len() { 2 } else { 1 });
        if cut < last.len() {
            store.append(row("0", 2)).unwrap();
        }
        drop(store);
        assert_eq!(place.read(FILE), format!("{whole}{last}"));
    }
}

#[test]
fn shards_merged_are_one_run() {
    let (one, a, b, out) = (TestDir::new(), TestDir::new(), TestDir::new(), TestDir::new());
    let mut store = open(&one);
    let mut shards = [
        SweepStore::open(&a.directory, "shard-1-of-2.jsonl", origin()).unwrap(),
        SweepStore::open(&b.directory, "shard-2-of-2.jsonl", origin()).unwrap(),
    ];
    for (at, (knob, seed)) in [("7", 1), ("60", 1), ("7", 2), ("60", 2)].into_iter().enumerate() {
        store.append(row(knob, seed)).unwrap();
        shards[at % 2].append(row(knob, seed)).unwrap();
    }
    store.finish().unwrap();
    // One shard was killed before it was sorted.
    shards[0].finish().unwrap();
    drop(shards);
    let from = [b.directory.clone(), a.directory.clone(), a.directory.clone()];
    SweepStore::merged(&from, Some(&out.directory)).unwrap().save().unwrap();
    let read = |place: &TestDir| fs::read(place.path(FILE)).unwrap();
    assert_eq!(read(&out), read(&one));
}

#[test]
fn rows_of_others_are_refused() {
    for (change, wanted) in [
        (StoreOrigin { version: "9".to_owned(), ..origin() }, "of version"),
        (StoreOrigin { scenario: "other".to_owned(), ..origin() }, "of the scenario fake"),
        (StoreOrigin { digest: "d2".to_owned(), ..origin() }, "before it was changed"),
    ] {
        let place = TestDir::new();
        open(&place).append(row("0", 1)).unwrap();
        let refused = SweepStore::open(&place.directory, FILE, change).unwrap_err();
        assert!(refused.message.contains(wanted), "{refused:?}");
        assert!(refused.message.contains("runs.jsonl, line 1"), "{refused:?}");
    }
    let place = TestDir::new();
    place.write(FILE, "{}\n");
    assert!(SweepStore::open(&place.directory, FILE, origin())
        .unwrap_err()
        .message
        .contains("not a row"));
    let mut other = row("0", 1);
    other.record.digest += 1;
    place.write(FILE, format!("{}{}", row("0", 1).line(), other.line()));
    let message = |from: &[PathBuf]| SweepStore::merged(from, None).unwrap_err().message;
    assert!(message(std::slice::from_ref(&place.directory)).contains("differ"));
    assert!(message(&[place.path("none")]).contains("cannot read"));
}

#[test]
fn rows_come_back_as_they_were() {
    let mut odd = row("0", u64::MAX);
    odd.record.digest = u64::MAX;
    odd.record.notes = vec!["a \"note\"\nof two lines".to_owned()];
    let line = odd.line();
    assert_eq!(line.matches('\n').count(), 1);
    let read: SweepRow = serde_json::from_str(&line).unwrap();
    assert_eq!(read.line(), line);
}

#[test]
fn numbers_come_back_to_the_last_bit() {
    let mut bits = 15u64;
    let mut draw = || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The lower bits of this generator have a short period.
        f64::from_bits((bits >> 32) | (bits.rotate_left(17) << 32))
    };
    let random = std::iter::repeat_with(&mut draw).filter(|value| value.is_finite()).take(20_000);
    let known = [965_282_597.240_368_7, -0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324];
    let values: Vec<f64> = known.into_iter().chain(random).collect();
    for some in values.chunks(500) {
        let names: Vec<String> = (0..some.len()).map(|at| format!("m{at}")).collect();
        let metrics: Vec<(&str, f64)> =
            names.iter().map(String::as_str).zip(some.iter().copied()).collect();
        let line = SweepRow { record: record("v", 1, &metrics), ..row("0", 1) }.line();
        let read: SweepRow = serde_json::from_str(&line).unwrap();
        assert_eq!(read.line(), line);
        for (name, value) in metrics {
            assert_eq!(read.record.metrics[name].value.to_bits(), value.to_bits(), "{value:?}");
        }
    }
}

#[test]
fn what_is_merged_into_a_store_joins_its_rows() {
    let (a, b, other) = (TestDir::new(), TestDir::new(), TestDir::new());
    open(&a).append(row("0", 1)).unwrap();
    open(&b).append(row("60", 1)).unwrap();
    let from = [a.directory.clone()];
    SweepStore::merged(&from, Some(&b.directory)).unwrap().save().unwrap();
    let text = b.read(FILE);
    assert_eq!(text, row("0", 1).line() + &row("60", 1).line());

    let of_other = SweepRow { scenario_digest: "d2".to_owned(), ..row("7", 1) };
    other.write(FILE, of_other.line());
    let refused = SweepStore::merged(&from, Some(&other.directory)).unwrap_err();
    assert!(refused.message.contains("before it was changed"), "{refused:?}");
    assert_eq!(other.read(FILE), of_other.line());
}

#[test]
fn a_file_has_one_writer() {
    let place = TestDir::new();
    let mut first = open(&place);
    let refused = SweepStore::open(&place.directory, FILE, origin()).unwrap_err();
    assert!(refused.message.contains("another process writes to"), "{refused:?}");
    let merge = SweepStore::merged(std::slice::from_ref(&place.directory), Some(&place.directory));
    assert!(merge.is_err(), "a merge does not overwrite rows while they are added");
    // A shard has its own file.
    let shard = SweepStore::open(&place.directory, "shard-1-of-2.jsonl", origin()).unwrap();
    first.append(row("0", 1)).unwrap();
    first.finish().unwrap();
    drop(shard);
    let mut second = open(&place);
    second.append(row("0", 2)).unwrap();
    drop((first, second));
    assert_eq!(open(&place).rows().count(), 2);
}

#[test]
fn a_row_that_a_file_has_twice_is_there_once() {
    let place = TestDir::new();
    let (first, second) = (row("0", 1).line(), row("0", 2).line());
    place.write(FILE, [first.as_str(), &second, &first].concat());
    open(&place).finish().unwrap();
    assert_eq!(place.read(FILE), first + &second);
}

#[test]
fn a_refused_store_gets_no_file() {
    let place = TestDir::new();
    open(&place).append(row("0", 1)).unwrap();
    let other = StoreOrigin { digest: "d2".to_owned(), ..origin() };
    assert!(SweepStore::open(&place.directory, "shard-1-of-2.jsonl", other).is_err());
    assert!(!place.path("shard-1-of-2.jsonl").exists());
}

#[test]
fn after_a_failed_write_nothing_is_written() {
    let place = TestDir::new();
    let mut store = open(&place);
    store.append(row("0", 1)).unwrap();
    // A file that is open for reading cannot be written.
    store.file.as_mut().unwrap().file = File::open(place.path(FILE)).unwrap();
    assert!(store.append(row("0", 2)).is_err());
    store.file.as_mut().unwrap().file =
        OpenOptions::new().append(true).open(place.path(FILE)).unwrap();
    assert!(store.append(row("0", 3)).is_err(), "it would stand behind half a line");
    assert_eq!(store.rows().count(), 1);
    assert_eq!(place.read(FILE), row("0", 1).line());
}
