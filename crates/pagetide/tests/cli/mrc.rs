//! `pagetide mrc`: its miss ratios compared with those of LRU, and what it counts.

use pagetide_testing::command::CommandOutput;
use pagetide_testing::directory::TestDir;
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
    place.run("trace import csv in.csv -o t.ptt --time-col 1 --obj-id-col 2").succeeds();
}

fn mrc(place: &TestDir, sizes: &str, format: &str) -> CommandOutput {
    place.run(format!("mrc t.ptt --sizes '{sizes}' --format {format}"))
}

/// The largest difference of the two miss ratios: relative to LRU's, and as a share of all
/// requests.
fn worst(place: &TestDir, sizes: &str) -> (f64, f64) {
    let json = mrc(place, sizes, "json").quietly().json();
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
    assert!(table.starts_with("trace  t.ptt\n2000 requests\n\n"), "{table}");
    // If everything fits, only the first read of an object misses, in all columns.
    let row = table.lines().find(|line| line.starts_with("64 MiB")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().skip(2).collect();
    assert_eq!((cells[0], cells[2..].to_vec()), ("16384", vec![cells[2]; 5]), "{table}");
    let csv = mrc(&place, "1MiB,64MiB", "csv").quietly().stdout;
    let head =
        "trace,variant,size,pages,requests,references,misses,miss_ratio,lru_miss_ratio,lru_obj";
    assert!(csv.starts_with(head), "{csv}");
    assert!(csv.contains("\nt.ptt,linux,67108864,16384,2000,2000,"), "{csv}");
    let info = place.run("trace info t.ptt").quietly();
    info.prints(&["replay     objects: without read-ahead"]);
    mrc(&place, "1MiB..64MiB", "csv").fails(2, &["does not say how many", "hint: write 64MiB"]);
    mrc(&place, "64 parsecs", "csv").fails(2, &["unknown unit `parsecs`", "hint:"]);
    place.run("mrc absent.ptt --sizes 1MiB").fails(2, &["absent.ptt"]);
}

fn points(place: &TestDir, args: &str) -> Vec<Value> {
    let json = place.run(format!("mrc t.ptt --format json --sizes {args}")).quietly().json();
    json["points"].as_array().unwrap().clone()
}

#[test]
fn repeats_within_a_second_are_requests() {
    let place = TestDir::new();
    let mut state = 1u64;
    let mut burst = Vec::new();
    for at in 0..2000u32 {
        state = state * 16807 % 2_147_483_647;
        let one =
            [&(at / 500).to_le_bytes()[..], &(state % 900).to_le_bytes(), &4096u32.to_le_bytes()];
        burst.extend([one.concat(), (-1i64).to_le_bytes().to_vec()].concat().repeat(10));
    }
    place.write("in.bin", burst);
    place.run("trace import oracle-general in.bin -o t.ptt").succeeds();
    let point = &points(&place, "1MiB")[0];
    assert_eq!((&point["requests"], &point["references"]), (&20_000.into(), &20_000.into()));
    let [ours, lru, objects] = ["miss_ratio", "lru_miss_ratio", "lru_object_miss_ratio"]
        .map(|key| point[key].as_f64().unwrap());
    assert!(lru < 0.1 && (ours - lru).abs() < 0.005 && objects == lru, "{point}");
}

#[test]
fn objects_of_several_pages_have_ratios_of_objects_and_bytes() {
    let place = TestDir::new();
    // Every other request is for a large object, which is never requested again.
    let request = |at: u64| match at % 2 {
        0 => format!("{},100\n", at % 40),
        _ => format!("{at},20000\n"),
    };
    place.write("in.csv", (0..1000).map(request).collect::<String>());
    place.run("trace import csv in.csv -o t.ptt --obj-id-col 1 --obj-size-col 2").succeeds();
    let point = &points(&place, "4MiB")[0];
    assert_eq!((&point["requests"], &point["references"]), (&1000.into(), &3000.into()));
    let of = |key: &str| (point[key].as_f64().unwrap() * 1e4).round() / 1e4;
    // 500 large objects of five pages, 20 small ones of one page.
    assert_eq!(of("lru_object_miss_ratio"), 0.52);
    assert_eq!(of("lru_byte_miss_ratio"), 0.9952);
    assert_eq!(of("lru_miss_ratio"), 0.84);
    assert!((of("miss_ratio") - 0.84).abs() < 0.01, "{point}");
    let table = mrc(&place, "4MiB", "table").quietly();
    let table = table.prints(&["1000 requests with 3000 references to pages"]);
    let ratios =
        ["miss ratio of references to pages", "miss ratio of objects", "miss ratio of bytes"];
    table.prints(&ratios);
}

#[test]
fn a_curve_has_variants_and_changes_of_the_machine() {
    let place = TestDir::new();
    import(&place, &requests(20_000, |draw| (draw * draw * 5000.0) as u64));
    let all = points(&place, "4MiB,8MiB --add-variant old:policy.lru=linux-3.3");
    let names: Vec<&str> = all.iter().map(|point| point["variant"].as_str().unwrap()).collect();
    assert_eq!(names, ["linux", "linux", "old", "old"]);
    assert_ne!(all[0]["misses"], all[2]["misses"]);
    assert_eq!(all[0]["arc_miss_ratio"], all[2]["arc_miss_ratio"]);
    let set = points(&place, "4MiB,8MiB --set policy.lru=linux-3.3");
    assert_eq!(set[0]["misses"], all[2]["misses"]);
    place
        .run("mrc t.ptt --sizes 4MiB --set policy.lru=linux-9")
        .fails(2, &["--set", "linux-9", "linux-5.4"]);
}
