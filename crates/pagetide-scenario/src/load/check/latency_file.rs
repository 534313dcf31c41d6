//! Reads a recorded histogram of latencies, in one of four forms:
//!
//! * rows `latency,count`, such as `90us,1200`; a plain number counts nanoseconds, as fio's bins do;
//! * the output of bcc's `biolatency`: rows `64 -> 127 : 35`, below a line with the unit;
//! * a map of `bpftrace`: rows `[64, 128) 35`, below a line with the name of the map, which is the
//!   unit;
//! * fio's `json+` output: the bins of `clat_ns`, of all jobs.
//!
//! Invariant: any bytes give requests or an error, never a panic.

use crate::load::named_files::read_text;
use crate::load::span::clip;
use crate::load::units::parse_time;
use crate::model::latency_shape::LatencyPiece;
use pagetide_core::units::page_size::PageSize;
use serde_json::Value;
use std::path::Path;

/// Largest file.
const BYTES_MAX: u64 = 16 << 20;
pub(super) const FORMS: &str =
    "write rows like `90us,1200` (latency and count), or name the output \
     of biolatency, of bpftrace's hist() or of fio --output-format=json+";
/// Beginnings of the other lines that biolatency and bpftrace print.
const REMARKS: [&str; 8] =
    ["#", "^C", "Tracing ", "Attaching ", "Attached ", "disk = ", "avg = ", "latency,count"];

type Complaint = (String, Option<String>);

/// The requests in the file. `jobs`: which of fio's requests, `read` or `write`.
pub(super) fn read(path: &Path, jobs: &str) -> Result<Vec<LatencyPiece>, Complaint> {
    let text = read_text(path, BYTES_MAX, FORMS)?;
    if text.len() as u64 > BYTES_MAX {
        let message = format!("it is larger than {} MiB", BYTES_MAX >> 20);
        return Err((message, Some(FORMS.to_owned())));
    }
    parse(&text, jobs)
}

fn parse(text: &str, jobs: &str) -> Result<Vec<LatencyPiece>, Complaint> {
    match text.trim_start().starts_with('{') {
        true => of_fio(text, jobs),
        false => rows(text),
    }
}

fn rows(text: &str) -> Result<Vec<LatencyPiece>, Complaint> {
    let mut pieces = Vec::new();
    let mut unit_ns = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || REMARKS.iter().any(|remark| line.starts_with(remark)) {
            continue;
        }
        if let Some(unit) = heading(line) {
            unit_ns = Some(unit);
            continue;
        }
        let wrong = |message: &str, hint: &str| {
            let place = format!("line {}, `{}`: {message}", index + 1, clip(line));
            Err((place, Some(hint.to_owned())))
        };
        let Some((low, end, count)) = power_of_two(line) else {
            match plain(line) {
                Some(piece) => pieces.push(piece),
                None => return wrong("not a row of a histogram", FORMS),
            }
            continue;
        };
        let Some(unit_ns) = unit_ns else {
            let hint =
                "keep the line above the rows that names the unit, as in `usecs : count` or \
                        `@usecs:`";
            return wrong("the unit is not known", hint);
        };
        // A bucket from 0 has no logarithm; it ends at the smallest unit.
        let (low, end) = (low.max(u64::from(end > 1)), end.max(low));
        let [low_ns, high_ns] = [low, end].map(|time| time.saturating_mul(unit_ns));
        pieces.push(LatencyPiece { count, low_ns, high_ns });
    }
    Ok(pieces)
}

/// The unit of the rows below: `usecs : count distribution`, or `@usecs:`.
fn heading(line: &str) -> Option<u64> {
    let name = match line.strip_prefix('@') {
        Some(map) => map.strip_suffix(':')?.split('[').next()?,
        None => line.split_once(':').filter(|(_, rest)| rest.trim().starts_with("count"))?.0,
    };
    let units = [("nsecs", 1), ("usecs", 1000), ("msecs", 1_000_000), ("secs", 1_000_000_000)];
    units.into_iter().find(|(unit, _)| name.trim().ends_with(unit)).map(|(_, ns)| ns)
}

/// A bucket of a histogram by powers of two: its first value, its end and its count.
fn power_of_two(line: &str) -> Option<(u64, u64, u64)> {
    let first_word = |text: &str| text.split_whitespace().next()?.parse().ok();
    if let Some(bucket) = line.strip_prefix('[') {
        let (range, rest) = bucket.split_once([')', ']'])?;
        let count = first_word(rest)?;
        let Some((low, end)) = range.split_once(',') else {
            let only = binary(range)?;
            return Some((only, only, count));
        };
        return Some((binary(low)?, binary(end)?, count));
    }
    let (range, rest) = line.split_once(':')?;
    let (low, last) = range.split_once("->")?;
    let last: u64 = last.trim().parse().ok()?;
    Some((low.trim().parse().ok()?, last.saturating_add(1), first_word(rest)?))
}

/// A number of bpftrace: `512`, `1K`, `2M`, in powers of two.
fn binary(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A row `latency,count`.
fn plain(line: &str) -> Option<LatencyPiece> {
    let (time, count) = line.split_once(',')?;
    let (time, count) = (time.trim(), count.trim().parse().ok()?);
    let ns = time.parse().ok().or_else(|| parse_time(time, PageSize::default()).ok())?;
    Some(LatencyPiece { count, low_ns: ns, high_ns: ns })
}

fn of_fio(text: &str, jobs: &str) -> Result<Vec<LatencyPiece>, Complaint> {
    let fio: Value = serde_json::from_str(text).map_err(|error| {
        let hint = "fio --output-format=json+ writes one object";
        (format!("not JSON: {error}"), Some(hint.to_owned()))
    })?;
    let all = fio["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bins = all.iter().filter_map(|job| job[jobs]["clat_ns"]["bins"].as_object()).flatten();
    let piece = |(time, count): (&String, &Value)| {
        let (ns, count) = (time.parse().ok()?, count.as_u64()?);
        Some(LatencyPiece { count, low_ns: ns, high_ns: ns })
    };
    let pieces: Vec<LatencyPiece> = bins.filter_map(piece).collect();
    if pieces.is_empty() {
        let message = format!("no job has `{jobs}.clat_ns.bins`");
        return Err((message, Some("use fio --output-format=json+".to_owned())));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u64, u64, u64)> {
        let pieces = rows(text).unwrap_or_else(|problem| panic!("{problem:?}"));
        pieces.iter().map(|it| (it.low_ns, it.high_ns, it.count)).collect()
    }

    #[test]
    fn rows_have_a_latency_and_a_count() {
        let text = "# recorded by hand\nlatency,count\n90us, 1200\n1500,3\n\n2ms,1\n";
        let wanted = [(90_000, 90_000, 1200), (1500, 1500, 3), (2_000_000, 2_000_000, 1)];
        assert_eq!(found(text), wanted);
    }

    #[test]
    fn histograms_by_powers_of_two_are_read() {
        let bcc = "Tracing block device I/O... Hit Ctrl-C to end.\n^C\n\ndisk = 'vda'\n     \
            usecs               : count     distribution\n         \
            0 -> 1          : 2        |*                                       |\n       \
            512 -> 1023       : 35       |**************                          |\n";
        let wanted = [(1000, 2000, 2), (512_000, 1_024_000, 35)];
        assert_eq!(found(bcc), wanted);
        let bpftrace = "Attaching 4 probes...\n^C\n\n@usecs:\n[0]                    1 |@   |\n\
            [512, 1K)             35 |@@@@@|\n[1M, 2M)               4 |@@  |\n";
        let wanted = [(0, 0, 1), (512_000, 1_024_000, 35), (1_048_576_000, 2_097_152_000, 4)];
        assert_eq!(found(bpftrace), wanted);
        assert_eq!(found("@msecs[259, 0]:\n[4, 8) 7 |@|"), [(4_000_000, 8_000_000, 7)]);
    }

    #[test]
    fn bins_of_fio_are_of_one_direction() {
        let fio = r#"{"jobs": [{"read": {"clat_ns": {"bins": {"91648": 7, "93696": 2}}},
            "write": {"clat_ns": {"bins": {"20000": 1}}}}, {"read": {"clat_ns": {}}}]}"#;
        let pieces = parse(fio, "read").unwrap();
        assert_eq!(pieces.iter().map(|it| (it.high_ns, it.count)).max(), Some((93_696, 2)));
        assert_eq!(parse(fio, "write").unwrap().len(), 1);
        let (message, hint) = parse(r#"{"jobs": [{"read": {}}]}"#, "write").unwrap_err();
        assert_eq!(message, "no job has `write.clat_ns.bins`");
        assert!(hint.unwrap().contains("json+"));
        assert!(parse("{\"jobs\"", "read").unwrap_err().0.starts_with("not JSON"));
    }

    #[test]
    fn what_is_no_histogram_is_named() {
        let (message, _) = rows("90us,12\nfast,3").unwrap_err();
        assert_eq!(message, "line 2, `fast,3`: not a row of a histogram");
        let (message, _) = rows("[512, 1K) 35 |@@|").unwrap_err();
        assert_eq!(message, "line 1, `[512, 1K) 35 |@@|`: the unit is not known");
        for odd in ["[, 1) 2", "[1K, ) 3", "1 -> : 2", "@:", "[99999999999T, 2) 1", "é", ","] {
            assert!(rows(odd).is_err(), "{odd}");
        }
        assert_eq!(rows(""), Ok(Vec::new()));
    }
}
