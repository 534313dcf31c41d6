//! Importers: good samples give the expected records; bad samples give an error with its position,
//! and no file.

use std::io::Read;
use std::path::{Path, PathBuf};

use pagetide_trace::{
    import, AccessKinds, Clock, FileType, FoldWindow, Format, Header, ImportOptions, ImportSummary,
    Maps, Record, RegionKind, TraceError, TracePosition, TraceProblem, TraceReader,
};

/// A temporary directory, removed on drop.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        let path =
            std::env::temp_dir().join(format!("pagetide-import-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Imported {
    summary: ImportSummary,
    header: Header,
    records: Vec<Record>,
}

fn load(path: &Path) -> (Header, Vec<Record>) {
    let mut reader = TraceReader::open(path).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        records.push(record);
    }
    (reader.header().clone(), records)
}

/// Imports in a new directory; an error must leave no file there.
fn run(
    name: &str,
    format: Format,
    input: &[u8],
    options: &ImportOptions,
) -> Result<Imported, TraceError> {
    let dir = TempDir::new(name);
    let output = dir.0.join("out.ptt");
    match import(format, input, options, &output) {
        Ok(summary) => {
            assert_eq!(dir.files(), ["out.ptt"]);
            let (header, records) = load(&output);
            assert_eq!(summary.totals.records, records.len() as u64);
            assert_eq!(summary.regions, header.regions.len());
            assert_eq!(summary.output_bytes, std::fs::metadata(&output).unwrap().len());
            Ok(Imported { summary, header, records })
        }
        Err(error) => {
            assert_eq!(dir.files(), [""; 0], "an error leaves nothing behind");
            Err(error)
        }
    }
}

fn window(pages: u32) -> ImportOptions {
    ImportOptions { window: Some(FoldWindow { pages, time: u64::MAX }), ..ImportOptions::default() }
}

const LACKEY: &str = "\
==12== Lackey, an example Valgrind tool
==12== Command: ./a.out

I  00401000,3
I  00401003,5
 S 1fff0006a0,8
I  00401ffe,4
 L 00402010,8
 M 1fff0006a8,8
I  00401000,3
--12-- a word in between
 L 00405ffc,8
==12== Exit code:       0
";

#[test]
fn lackey_folds_to_pages() {
    let got = run("folds", Format::Lackey, LACKEY.as_bytes(), &window(64)).unwrap();
    let names: Vec<_> = got.header.regions.iter().map(|region| region.name.as_str()).collect();
    assert_eq!(names, ["text-401000", "constants-405000", "anon-1fff000000"]);
    let record = |region, page, kinds, references, time| Record {
        region,
        page,
        kinds,
        references,
        time,
        bytes: 0,
    };
    let (read, write) = (AccessKinds::READ, AccessKinds::WRITE);
    let expected = [
        // Four fetches start in page 401. One of them reaches into 402, which is also read.
        record(0, 0, AccessKinds::EXECUTE, 4, 0),
        record(2, 0, read.union(write), 2, 1),
        record(0, 1, AccessKinds::EXECUTE.union(read), 2, 1),
        // A load across a page boundary touches both pages.
        record(1, 0, read, 1, 1),
        record(1, 1, read, 1, 0),
    ];
    assert_eq!(got.records, expected);
    assert_eq!(got.header.clock, Clock::Instructions);
    assert_eq!(got.summary.totals.time, 4, "four instructions");
    assert_eq!(got.summary.input_bytes, LACKEY.len() as u64);
    assert_eq!(got.summary.input_records, 13);
    assert_eq!(got.summary.skipped, 5);
}

#[test]
fn lackey_window_of_one_merges_plain_runs() {
    let got = run("runs", Format::Lackey, LACKEY.as_bytes(), &window(1)).unwrap();
    let pages: Vec<_> =
        got.records.iter().map(|record| (record.region, record.page, record.references)).collect();
    let expected =
        [(0, 0, 2), (2, 0, 1), (0, 0, 1), (0, 1, 2), (2, 0, 1), (0, 0, 1), (1, 0, 1), (1, 1, 1)];
    assert_eq!(pages, expected);
}

#[test]
fn lackey_takes_files_from_maps() {
    let maps = "\
00401000-00403000 r-xp 00001000 08:01 7 /usr/bin/a.out
00405000-00407000 rw-p 00004000 08:01 7 /usr/bin/a.out
1fff000000-1fff001000 rw-p 00000000 00:00 0 [stack]
";
    let options = ImportOptions { maps: Some(Maps::parse(maps).unwrap()), ..window(64) };
    let text = LACKEY.replace(" L 00405ffc,8", " L 00405ffc,8\n S 00406000,8");
    let got = run("maps", Format::Lackey, text.as_bytes(), &options).unwrap();
    let regions = &got.header.regions;
    assert_eq!(regions.len(), 4);
    assert!(matches!(regions[0].kind, RegionKind::File { executable: true, .. }));
    assert!(matches!(regions[1].kind, RegionKind::File { executable: false, .. }));
    assert_eq!(
        (regions[0].name.as_str(), regions[0].pages, regions[0].start),
        ("/usr/bin/a.out", 2, 0x401)
    );
    // The written page is a private copy.
    assert_eq!((&regions[2].kind, regions[2].start), (&RegionKind::Anon, 0x406));
    // Another trace with the same mapping has the same file.
    let other = ImportOptions { source: "other".into(), ..options.clone() };
    let again = run("maps2", Format::Lackey, b"I  00401000,3\n", &other).unwrap();
    assert_eq!(again.header.regions[0].kind, regions[0].kind);
}

#[test]
fn lackey_without_maps_shares_nothing_with_another_trace() {
    let one = run("one", Format::Lackey, LACKEY.as_bytes(), &window(64)).unwrap();
    let same = run("same", Format::Lackey, LACKEY.as_bytes(), &window(1)).unwrap();
    let other = run("other", Format::Lackey, b"I  00401000,3\n", &window(64)).unwrap();
    assert_eq!(one.header.regions[0].kind, same.header.regions[0].kind);
    assert_ne!(one.header.regions[0].kind, other.header.regions[0].kind);
}

#[test]
fn lackey_keeps_holes_small_and_regions_few() {
    // 3000 pages, each far from the next: few regions, and their sizes stay bounded.
    let mut text = String::new();
    for n in 0..3000u64 {
        text.push_str(&format!(" S {:x},8\n", n << 40));
    }
    let got = run("far", Format::Lackey, text.as_bytes(), &window(64)).unwrap();
    assert!(got.header.regions.len() <= 1024);
    assert!(got.header.pages() < 3000 * 66);
    assert_eq!(got.summary.totals.distinct_pages, 3000);
}

#[test]
fn lackey_says_which_line_is_wrong() {
    let text = "I  00401000,3\n S 1000,8\nhello from the program\n";
    let error = run("line", Format::Lackey, text.as_bytes(), &window(64)).err().unwrap();
    assert_eq!(error.place, TracePosition::Line { line: 3, byte: 24 });
    assert!(matches!(error.problem, TraceProblem::BadText { what: "lackey line", .. }));
    assert!(error.to_string().contains("hint: write valgrind's output to its own file"), "{error}");
    for bad in
        ["I  00401000,0", "I  00401000,5000", " L ffffffffffffffff,8", "I  401", "I", " X 1,1"]
    {
        let text = format!("I  00401000,3\n{bad}\n");
        let error = run("bad", Format::Lackey, text.as_bytes(), &window(64)).err().unwrap();
        assert_eq!(error.place, TracePosition::Line { line: 2, byte: 14 }, "{bad}");
    }
}

#[test]
fn a_line_without_end_takes_no_memory() {
    let input = b"I  00401000,3\n".chain(std::io::repeat(b'=').take(1 << 30));
    let dir = TempDir::new("endless");
    let error = import(Format::Lackey, input, &window(64), dir.0.join("x.ptt")).unwrap_err();
    assert!(matches!(error.problem, TraceProblem::TooLarge { what: "length of a line", .. }));
    assert_eq!(error.line(), Some(2));
}

#[test]
fn an_error_keeps_the_old_file() {
    let dir = TempDir::new("keeps");
    let output = dir.0.join("out.ptt");
    std::fs::write(&output, "old").unwrap();
    import(Format::Lackey, b"rubbish\n".as_slice(), &window(64), &output).unwrap_err();
    assert_eq!(std::fs::read(&output).unwrap(), b"old");
    import(Format::Lackey, b"I  00401000,3\n".as_slice(), &window(64), &output).unwrap();
    assert_eq!(load(&output).1.len(), 1);
    assert_eq!(dir.files(), ["out.ptt"]);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let output = Path::new("/nonexistent/out.ptt");
    let error = import(Format::Lackey, LACKEY.as_bytes(), &window(64), output).unwrap_err();
    assert_eq!(error.file.as_deref(), Some(output));
}

#[test]
fn more_pages_than_allowed_is_an_error() {
    let options = ImportOptions { max_pages: 3, ..window(64) };
    let error = run("many", Format::Lackey, LACKEY.as_bytes(), &options).err().unwrap();
    let problem = TraceProblem::TooLarge { what: "number of distinct pages", value: 4, limit: 3 };
    assert_eq!(error.problem, problem);
    assert_eq!(error.line(), Some(12));
}

fn oracle(requests: &[(u32, u64, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(time, object, size) in requests {
        bytes.extend_from_slice(&time.to_le_bytes());
        bytes.extend_from_slice(&object.to_le_bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
        bytes.extend_from_slice(&(-1i64).to_le_bytes());
    }
    bytes
}

const REQUESTS: [(u32, u64, u32); 7] = [
    (100, 7, 5000), // two pages
    (100, 9, 4096), // one page
    (101, 7, 5000), // hits
    (101, 3, 0),    // skipped
    (100, 9, 4097), // grown, and with an earlier time
    (103, 9, 10),   // its first page
    (103, 9, 10),   // merged with the request before
];

#[test]
fn oracle_general_splits_objects_into_pages() {
    let got = run("oracle", Format::OracleGeneral, &oracle(&REQUESTS), &ImportOptions::default())
        .unwrap();
    let of = |record: &Record| (record.page, record.references, record.time, record.bytes);
    let pages: Vec<_> = got.records.iter().map(of).collect();
    let second = 1_000_000_000;
    let expected = [
        (0, 1, 0, 5000),
        (1, 1, 0, 0),
        (2, 1, 0, 4096),
        (0, 1, second, 5000),
        (1, 1, 0, 0),
        (3, 1, 0, 4097),
        (4, 1, 0, 0),
        (3, 2, 2 * second, 10),
    ];
    assert_eq!(pages, expected);
    assert_eq!(got.header.clock, Clock::Nanoseconds);
    assert_eq!(got.header.regions.len(), 1);
    assert_eq!(got.header.pages(), 5);
    assert!(matches!(got.header.regions[0].kind, RegionKind::File { executable: false, .. }));
    assert_eq!((got.summary.input_records, got.summary.skipped, got.summary.disordered), (7, 1, 1));
}

#[test]
fn oracle_general_compressed_is_the_same() {
    let plain =
        run("plain", Format::OracleGeneral, &oracle(&REQUESTS), &ImportOptions::default()).unwrap();
    let packed = zstd::encode_all(oracle(&REQUESTS).as_slice(), 3).unwrap();
    let got = run("zst", Format::OracleGeneral, &packed, &ImportOptions::default()).unwrap();
    assert_eq!(got.header, plain.header);
    assert_eq!(got.summary, plain.summary);
    // Two frames one after the other are one input.
    let half = oracle(&REQUESTS[..3]);
    let rest = oracle(&REQUESTS[3..]);
    let mut frames = zstd::encode_all(half.as_slice(), 3).unwrap();
    frames.extend(zstd::encode_all(rest.as_slice(), 3).unwrap());
    let got = run("frames", Format::OracleGeneral, &frames, &ImportOptions::default()).unwrap();
    assert_eq!(got.summary, plain.summary);
    for cut in 5..packed.len() {
        let error = run("cut", Format::OracleGeneral, &packed[..cut], &ImportOptions::default())
            .err()
            .unwrap();
        assert!(error.byte().is_some(), "cut at {cut}: {error}");
    }
}

#[test]
fn oracle_general_cut_short_says_where() {
    let bytes = oracle(&REQUESTS);
    // A single byte could be text.
    for cut in 2..bytes.len() {
        let result = run("short", Format::OracleGeneral, &bytes[..cut], &ImportOptions::default());
        match result {
            Ok(_) => assert_eq!(cut % 24, 0),
            Err(error) => {
                assert_ne!(cut % 24, 0);
                assert_eq!(error.byte(), Some(cut as u64), "{error}");
            }
        }
    }
}

#[test]
fn a_huge_object_is_an_error_and_no_allocation() {
    let bytes = oracle(&[(0, 1, 100), (0, 2, u32::MAX)]);
    let error =
        run("huge", Format::OracleGeneral, &bytes, &ImportOptions::default()).err().unwrap();
    let problem =
        TraceProblem::TooLarge { what: "object size", value: u64::from(u32::MAX), limit: 1 << 30 };
    assert_eq!(error, TraceError::at_byte(24, problem));
}

#[test]
fn time_can_be_divided_and_dropped() {
    let time = |divisor| {
        let options = ImportOptions { time_divisor: divisor, ..ImportOptions::default() };
        run("time", Format::OracleGeneral, &oracle(&REQUESTS), &options)
            .unwrap()
            .summary
            .totals
            .time
    };
    assert_eq!((time(1), time(1000), time(0)), (3_000_000_000, 3_000_000, 0));
}

fn csv(text: &str) -> ImportOptions {
    ImportOptions { csv: text.parse().unwrap(), ..ImportOptions::default() }
}

#[test]
fn csv_reads_columns_by_number() {
    let text = "ts;op;tenant;key;size\n1.5;get;a;x;4096\n1.75;SET;b;x;1\n2;delete;a;x;1\n2; get ;a;x;8000\n";
    let options = csv("time-col=1,op-col=2,tenant-col=3,obj-id-col=4,obj-size-col=5,delimiter=;");
    let got = run("csv", Format::Csv, text.as_bytes(), &options).unwrap();
    let records: Vec<_> = got.records.iter().map(|r| (r.region, r.page, r.kinds, r.time)).collect();
    let expected = [
        (0, 0, AccessKinds::READ, 0),
        (1, 0, AccessKinds::WRITE, 250_000_000),
        (0, 1, AccessKinds::READ, 250_000_000),
        (0, 2, AccessKinds::READ, 0),
    ];
    assert_eq!(records, expected);
    let names: Vec<_> = got.header.regions.iter().map(|region| region.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!((got.summary.input_records, got.summary.skipped), (5, 1));
}

/// Columns of the cache traces of Twitter: time, key, size of the key, size of the value, client,
/// operation, time to live.
#[test]
fn csv_reads_the_columns_of_a_cache_trace() {
    let text = "0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n\
                0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,5000,5,set,86400\n\
                1,q:q:1:8WTfjZU14ee,17,213,4,gets,0\n\
                1,q:q:1:8WTfjZU14ee,17,0,4,delete,0\n\
                2,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,5000,6,incr,0\n\
                2,missing,7,0,6,get,0\n";
    let options = csv("time-col=1,obj-id-col=2,obj-size-col=4,op-col=6");
    let got = run("csv", Format::Csv, text.as_bytes(), &options).unwrap();
    let records: Vec<_> = got.records.iter().map(|r| (r.page, r.kinds, r.time)).collect();
    let both = AccessKinds::READ.union(AccessKinds::WRITE);
    let second = 1_000_000_000;
    let expected = [
        (0, AccessKinds::READ, 0),
        (1, AccessKinds::WRITE, 0),
        (2, AccessKinds::WRITE, 0),
        (0, AccessKinds::READ, second),
        (1, both, second),
        (2, both, 0),
    ];
    assert_eq!(records, expected);
    assert_eq!((got.summary.input_records, got.summary.skipped), (6, 2));
}

#[test]
fn csv_guesses_delimiter_and_header() {
    for text in
        ["1,5,100\n2,6,100\n", "t\tid\tsize\n1\t5\t100\n2\t6\t100", "1|5|100\r\n2|6|100\r\n"]
    {
        let options = csv("time-col=1,obj-id-col=2,obj-size-col=3");
        let got = run("guess", Format::Csv, text.as_bytes(), &options).unwrap();
        assert_eq!(got.records.len(), 2, "{text}");
    }
    // No column must be a number here, but a number in the second line shows a header in the first.
    for (text, records) in
        [("ts,op,key\n0.5,get,k1\n1.5,get,k2\n", 2), ("a,get,k\nb,get,k\n", 2), ("key\n7\n", 1)]
    {
        let column = if text.contains(',') { 3 } else { 1 };
        let options = csv(&format!("obj-id-col={column}"));
        let got = run("names", Format::Csv, text.as_bytes(), &options).unwrap();
        assert_eq!(got.summary.has_header, !text.contains("a,get"), "{text}");
        assert_eq!(got.summary.totals.references, records, "{text}");
    }
    let got =
        run("ids", Format::Csv, b"key\na\nb\n", &csv("obj-id-col=1,has-header=true")).unwrap();
    assert_eq!(got.records.len(), 2);
}

#[test]
fn csv_asks_for_the_column_of_the_object() {
    let default = ImportOptions::default();
    let error = run("which", Format::Csv, b"1.5,get,k\n2,get,k\n", &default).err().unwrap();
    assert_eq!(error.problem, TraceProblem::NoObjectColumn { line: "1.5,get,k".into() });
    assert!(error.to_string().contains("hint: name it: --obj-id-col N"), "{error}");
    let only = run("only", Format::Csv, b"k1\nk2\nk1\n", &default).unwrap();
    assert_eq!(only.summary.totals.references, 3);
}

#[test]
fn csv_says_which_line_and_column_is_wrong() {
    let options = csv("time-col=1,obj-id-col=2,obj-size-col=3,has-header=false");
    for (bad, what) in [
        ("2,6", "obj-size-col"),
        ("2,6,x", "obj-size-col"),
        ("2,6,-1", "obj-size-col"),
        ("x,6,1", "time-col"),
        ("99999999999999999999,6,1", "time-col"),
        ("2,,1", "obj-id-col"),
        ("2,6,99999999999", "object size"),
    ] {
        let text = format!("1,5,100\n{bad}\n3,5,100\n");
        let error = run("field", Format::Csv, text.as_bytes(), &options).err().unwrap();
        assert_eq!(error.place, TracePosition::Line { line: 2, byte: 8 }, "{bad}: {error}");
        assert!(error.to_string().contains(what), "{bad}: {error}");
    }
    let options = csv("obj-id-col=1,op-col=2,obj-id-is-num=true,has-header=false");
    for bad in ["1,fetch", "x,get"] {
        assert!(run("op", Format::Csv, bad.as_bytes(), &options).is_err(), "{bad}");
    }
}

#[test]
fn csv_quote_without_end_takes_no_memory() {
    let dir = TempDir::new("quote");
    let input = b"1,5,100\n\"".chain(std::io::repeat(b'x').take(1 << 30));
    let options = csv("time-col=1,obj-id-col=2");
    let error = import(Format::Csv, input, &options, dir.0.join("x.ptt")).unwrap_err();
    assert!(
        matches!(error.problem, TraceProblem::TooLarge { what: "length of a line", .. }),
        "{error}"
    );
}

#[test]
fn the_wrong_format_is_named() {
    let dir = TempDir::new("wrong");
    let ptt = dir.0.join("a.ptt");
    import(Format::Lackey, LACKEY.as_bytes(), &window(64), &ptt).unwrap();
    let ptt = std::fs::read(&ptt).unwrap();
    let (oracle, gzip) = (oracle(&REQUESTS), b"\x1f\x8b\x08\0\0\0");
    for (format, input, looks_like) in [
        (Format::Lackey, oracle.as_slice(), FileType::Binary),
        (Format::Lackey, &ptt, FileType::Ptt),
        (Format::Lackey, gzip, FileType::Gzip),
        (Format::Lackey, b"", FileType::Empty),
        (Format::OracleGeneral, LACKEY.as_bytes(), FileType::Recording(Format::Lackey)),
        (Format::OracleGeneral, b"1,2,3\n", FileType::Text),
        (Format::OracleGeneral, &ptt, FileType::Ptt),
        (Format::Csv, &oracle, FileType::Binary),
        (Format::Csv, LACKEY.as_bytes(), FileType::Recording(Format::Lackey)),
    ] {
        let error = run("format", format, input, &ImportOptions::default()).err().unwrap();
        let TraceProblem::WrongFormat { looks_like: found, .. } = error.problem else {
            panic!("{format}: {error}");
        };
        assert_eq!(found, looks_like, "{format}");
        assert!(error.hint().is_some());
    }
    let error = run("none", Format::Lackey, b"==1== nothing\n", &window(64)).err().unwrap();
    assert!(matches!(error.problem, TraceProblem::Empty { hint } if hint.contains("valgrind")));
    let error = "lacky".parse::<Format>().unwrap_err();
    assert_eq!(error.to_string(), "format `lacky` is not `lackey`, `oracle-general` or `csv`");
}

#[test]
fn the_documentation_lists_every_format() {
    const SHOWN: usize = 3;
    let table: String = Format::ALL
        .iter()
        .map(|format| {
            let FoldWindow { pages, time } = format.default_window();
            let options = match format.options() {
                [first, rest @ ..] if rest.len() >= SHOWN => {
                    format!("`--{first}`, and those below")
                }
                few => few.iter().map(|one| format!("`--{one}`")).collect::<Vec<_>>().join(", "),
            };
            format!("| `{format}` | {} | {pages}, {time} | {options} |\n", format.what())
        })
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace-format.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(&table), "docs/trace-format.md must list:\n{table}");
    for format in Format::ALL {
        assert!(text.contains(&format!("### `{format}`\n")), "{format} has no section");
    }
}
