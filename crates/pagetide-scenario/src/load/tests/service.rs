//! Services, rates and curves: the mistake of each key, its position, and the hint.

use super::*;

const TASK: &str = "[[task]]\nname = \"b\"\nworkload = \"service\"\n";

/// A mistake in a line after a valid service (`rate`, `duration`, `cpu`), which starts in line 6.
#[track_caller]
fn wrong(line: &str, text: &str, message: &str, hint: &str) {
    let keys = "rate = 100\nduration = \"1s\"\n";
    let cpu = if line.contains("cpu") { "" } else { "cpu = \"1ms\"\n" };
    let before = format!("{TASK}{keys}{cpu}");
    let (number, found) = line.lines().enumerate().find(|(_, found)| found.contains(text)).unwrap();
    let number = before.lines().count() + number + 1;
    let column = found.find(text).unwrap() + 1;
    expect(&format!("{before}{line}\n"), number as isize, column, text, message, hint);
}

#[test]
fn every_key_of_a_service_is_checked() {
    let heap = "heap = \"1MiB\"\ntouches = 4\n";
    wrong(
        "arrivals = \"poison\"",
        "\"poison\"",
        "unknown kind of arrivals `poison`",
        "did you mean \"poisson\"?",
    );
    wrong(
        "cpu = \"1ms\"\ncpu_distribution = \"normal\"",
        "\"normal\"",
        "unknown distribution `normal`",
        "it is one of `fixed` and `exponential`",
    );
    wrong("cpu = 5", "5", "a time needs a unit", units::TIME_FORMS);
    wrong("threads = 0", "0", "0 is out of range", "write an integer, from 1 to 256");
    wrong(
        "queue = 2000000",
        "2000000",
        "2000000 is out of range",
        "write an integer, from 0 to 1048576",
    );
    wrong("deadline = 5", "5", "a time needs a unit", units::TIME_FORMS);
    wrong("requests = 0", "0", "0 is out of range", "write an integer, 1 or more");
    wrong(
        "touches = 4",
        "4",
        "`touches` needs `heap`",
        "add heap = \"64MiB\", the memory that requests touch",
    );
    wrong(
        "heap = \"1MiB\"",
        "\"1MiB\"",
        "`heap` needs `touches`",
        "add touches = 16, the pages that a request touches",
    );
    wrong(
        &format!("{heap}order = \"sequential\""),
        "\"sequential\"",
        "requests cannot touch pages in this order",
        "write order = \"zipf\" or \"random\"",
    );
    wrong(
        &format!("{heap}order = \"random\"\nexponent = 1.1"),
        "1.1",
        "this order has no `exponent`",
        "leave it out: only order = \"zipf\" has an exponent",
    );
    wrong(
        &format!("{heap}write_percent = 101"),
        "101",
        "101 is out of range",
        "write an integer, from 0 to 100",
    );
    wrong(
        "read = \"4KiB\"",
        "\"4KiB\"",
        "`read` needs `file`",
        "add file = \"NAME\", the file to use",
    );
    wrong(
        "file = \"data\"",
        "\"data\"",
        "`file` needs `read`",
        "add `read` or `write`, or both: read = \"16KiB\"",
    );
    wrong(
        "file = \"data\"\nwrite = \"65MiB\"",
        "\"65MiB\"",
        "a request uses 65MiB, but the file has only 64MiB",
        "make the file larger, or this size smaller",
    );
    wrong(
        "file = \"data\"\nread = 0",
        "0",
        "not a valid size of a read() or write() call",
        "write a size from 1 byte to 1GiB",
    );
    wrong("allocate = 0", "0", "the region has size 0", "write size = \"64MiB\", for example");
    wrong(
        "grow = \"2TiB/s\"",
        "\"2TiB/s\"",
        "the rate is out of range",
        "write a rate from 1 byte/s to 1TiB/s, for example \"100MiB/s\" or \"2000 pages/s\"",
    );
    wrong(
        "cpu_distribution = \"exponential\"",
        "\"exponential\"",
        "`cpu_distribution` needs `cpu`",
        "add cpu = \"1ms\", the mean CPU time",
    );
}

#[test]
fn a_service_has_a_rate_an_end_and_work() {
    let rate = "write requests per second: a number from 0.001 to 10000000 with at most three decimals, for \
                example 500";
    for text in ["0", "\"500\"", "0.0001", "-1", "20000000"] {
        let all = format!("{TASK}cpu = \"1ms\"\nduration = \"1s\"\nrate = {text}\n");
        expect(&all, 6, 8, text, "not a valid rate of requests", rate);
    }
    let all = format!("{TASK}cpu = \"1ms\"\nrate = 1\n");
    expect(
        &all,
        2,
        8,
        "\"b\"",
        "the task `b` never ends",
        "add duration = \"10s\" to its service, or background = true to the task",
    );
    let all = format!("{TASK}cpu = \"1ms\"\nrate = 1\nduration = 0\n");
    expect(
        &all,
        6,
        12,
        "0",
        "the duration is out of range",
        "write how long requests arrive: \"10s\", for example, at most two years",
    );
    let all = format!("{TASK}cpu = \"1ms\"\nrate = 1\nrequests = 5\ngrow = \"1MiB/s\"\n");
    expect(
        &all,
        7,
        8,
        "\"1MiB/s\"",
        "`grow` needs `duration`",
        "add duration = \"10s\": it limits the growth of the service",
    );
    let all = format!("{TASK}rate = 1\nduration = \"1s\"\n");
    expect(
        &all,
        3,
        12,
        "\"service\"",
        "requests have no work",
        "add cpu = \"1ms\", or heap and touches, or file and read, for example",
    );
    let all = format!("{TASK}cpu = \"1ms\"\nduration = \"1s\"\n");
    expect(&all, 3, 12, "\"service\"", "workload service has no `rate`", "add rate = 500");
}

#[test]
fn a_curve_has_points_in_order() {
    let form = "a curve is written like [[\"0s\", \"20 %\"], [\"10min\", \"100 %\"]]";
    let one_to_many = format!("write 1 to 1000 points; {form}");
    for (load, text, message, hint) in [
        ("[]", "[]", "the curve has no points", one_to_many.as_str()),
        ("[[\"1s\"]]", "[\"1s\"]", "a point has a time and a share", form),
        ("[\"1s\"]", "\"1s\"", "expected a time and a share, found a string", form),
        ("[[1, \"5 %\"]]", "1", "a time needs a unit", units::TIME_FORMS),
        ("[[\"1s\", 5]]", "5", "a share needs a unit", units::PERCENT_FORMS),
        ("[[\"1s\", \"101 %\"]]", "\"101 %\"", "`101 %`: more than 100 %", units::PERCENT_FORMS),
        (
            "[[\"2s\", \"5 %\"], [\"1s\", \"6 %\"]]",
            "\"1s\"",
            "the point is earlier than the previous one",
            "write the points in the order of their times",
        ),
        (
            "[[\"1s\", 0]]",
            "[[\"1s\", 0]]",
            "the load is 0 % at all times",
            "give a point a share above \"0 %\"",
        ),
        (
            "[[\"0s\", \"5 %\"], [\"99999h\", \"5 %\"]]",
            "\"99999h\"",
            "the time of the point is too large",
            "write at most two years",
        ),
    ] {
        wrong(&format!("load = {load}"), text, message, hint);
    }
    let ends = "[[\"0s\", \"5 %\"], [\"1s\", 0]]";
    let all = format!("{TASK}cpu = \"1ms\"\nrate = 1\nrequests = 5\nload = {ends}\n");
    expect(
        &all,
        7,
        8,
        ends,
        "the load ends at 0 %: the remaining requests would never arrive",
        "end with a share above \"0 %\", or add a duration",
    );
}

#[test]
fn rates_of_accesses_are_checked() {
    let touch = "[[task]]\nname = \"b\"\nworkload = \"touch\"\nsize = \"1MiB\"\n";
    let range =
        "write a rate from 1 byte/s to 1TiB/s, for example \"100MiB/s\" or \"2000 pages/s\"";
    for (keys, line, column, text, message, hint) in [
        ("rate = \"1MiB\"", 5, 8, "\"1MiB\"", "`1MiB`: not a rate", "did you mean `1MiB/s`?"),
        ("rate = 0", 5, 8, "0", "the rate is out of range", range),
        (
            "load = [[\"0s\", \"5 %\"]]",
            5,
            8,
            "[[\"0s\", \"5 %\"]]",
            "`load` needs `rate`",
            "add rate = \"100MiB/s\", for example: `load` is a share of the rate",
        ),
        (
            "rate = \"1MiB/s\"\nload = [[\"0s\", \"5 %\"], [\"1s\", 0]]",
            6,
            8,
            "[[\"0s\", \"5 %\"], [\"1s\", 0]]",
            "the load ends at 0 %: the remaining accesses would never be due",
            "end with a share above \"0 %\"; it holds after the last point",
        ),
    ] {
        expect(&format!("{touch}{keys}\n"), line, column, text, message, hint);
    }
}
