//! `pagetide mrc`: its miss ratios compared with those of exact LRU lists.

use crate::common::{CommandOutput, TestDir};
use serde_json::Value;

/// A csv file of requests for objects of one page; `draw` maps a number in 0..1 to an id.
fn requests(number: usize, draw: impl Fn(f64) -> u64) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = String::from("time,id\n");
    for _ in 0..number {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let id = draw((state >> 11) as f64 / (1u64 << 53) as f64);
        text += &format!("0,{id}\n");
    }
    text
}

fn import(place: &TestDir, text: &str) {
    place.write("in.csv", text);
    let import = ["trace", "import", "csv", "in.csv", "-o", "t.ptt"];
    let ran = place.run(import.into_iter().chain(["--time-col", "1", "--obj-id-col", "2"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn mrc(place: &TestDir, sizes: &str, format: &str) -> CommandOutput {
    place.run(["mrc", "t.ptt", "--sizes", sizes, "--format", format])
}

/// The largest difference of the two miss ratios: relative to LRU's, and as a share of all
/// requests.
fn worst(place: &TestDir, sizes: &str) -> (f64, f64) {
    let json: Value = serde_json::from_str(&mrc(place, sizes, "json").quietly().stdout).unwrap();
    let points = json["points"].as_array().unwrap();
    let mut worst = (0.0_f64, 0.0_f64);
    for point in points {
        let [ours, lru] = ["miss_ratio", "lru_miss_ratio"].map(|key| point[key].as_f64().unwrap());
        worst = (worst.0.max((ours / lru - 1.0).abs()), worst.1.max((ours - lru).abs()));
    }
    worst
}

/// Objects: 96 MiB.
const OBJECTS: f64 = 24_576.0;

#[test]
fn uniform_requests_miss_as_lru_does() {
    let place = TestDir::new();
    import(&place, &requests(150_000, |draw| (draw * OBJECTS) as u64));
    let (of_lru, _) = worst(&place, "16MiB..64MiB/3");
    assert!(of_lru < 0.04, "{of_lru}");
}

#[test]
fn skewed_requests_miss_about_as_lru_does() {
    let place = TestDir::new();
    // Density 1/x, like zipf with exponent 1.
    import(&place, &requests(150_000, |draw| OBJECTS.powf(draw) as u64));
    // Two lists with a referenced bit approximate one exact LRU list.
    let (of_lru, of_all) = worst(&place, "8MiB..64MiB/4");
    assert!(of_lru < 0.06 && of_all < 0.01, "{of_lru}, {of_all}");
}

#[test]
fn a_curve_is_printed_in_each_format_and_objects_have_no_read_ahead() {
    let place = TestDir::new();
    import(&place, &requests(2000, |draw| (draw * 5000.0) as u64));
    let table = mrc(&place, "1MiB,64MiB", "table").quietly().stdout;
    assert!(table.starts_with("trace  t.ptt\n\n"), "{table}");
    // If everything fits, only the first read of an object misses, in both columns.
    let row = table.lines().find(|line| line.starts_with("64 MiB")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().skip(2).collect();
    assert_eq!((cells[0], cells[1], cells[2]), ("16384", "2000", cells[4]), "{table}");
    let csv = mrc(&place, "1MiB,64MiB", "csv").quietly().stdout;
    assert!(csv.starts_with("trace,size,pages,requests,misses,miss_ratio,lru_misses,"), "{csv}");
    assert!(csv.contains("\nt.ptt,67108864,16384,2000,"), "{csv}");
    let info = place.run(["trace", "info", "t.ptt"]).quietly().stdout;
    assert!(info.contains("replay     objects: without read-ahead"), "{info}");
    mrc(&place, "1MiB..64MiB", "csv").fails(2, &["does not say how many", "hint: write 64MiB"]);
    mrc(&place, "64 parsecs", "csv").fails(2, &["unknown unit `parsecs`", "hint:"]);
    place.run(["mrc", "absent.ptt", "--sizes", "1MiB"]).fails(2, &["absent.ptt"]);
}
