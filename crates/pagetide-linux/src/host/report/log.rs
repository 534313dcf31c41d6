//! The lines of a kernel log: without prefixes, and wrapped lines joined.
//!
//! Prefixes are those of dmesg (`[ 12.345678]`, `[Thu Jun 13 04:36:30 2019]`, `<4>`, `[T123]`), of
//! syslog (`Jun 13 04:36:30 host kernel: `) and of quotes in mails (`> `). Where most lines have a
//! prefix, a line without one continues the line before, as does a line of
//! counters after another. Invariant: each line has its number in the
//! file.

/// Columns at which terminals and mail programs wrap, in the middle of a word.
const HARD_WRAP: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogLine {
    /// From 1.
    pub number: usize,
    pub text: String,
}

/// A line of the file, and the same without quotes and without prefixes.
struct RawLine<'t> {
    unquoted: &'t str,
    bare: &'t str,
}

pub(super) fn lines(text: &str) -> Vec<LogLine> {
    let raw: Vec<RawLine<'_>> = text
        .lines()
        .map(|line| {
            let unquoted = line.trim_end().trim_start_matches(['>', ' ', '\t']);
            RawLine { unquoted, bare: bare(unquoted) }
        })
        .collect();
    let has_prefix = |line: &RawLine<'_>| line.bare.len() < line.unquoted.len();
    let filled = raw.iter().filter(|line| !line.bare.is_empty()).count();
    let is_prefixed = raw.iter().filter(|line| has_prefix(line)).count() * 2 > filled;
    let mut lines: Vec<LogLine> = Vec::new();
    for (index, line) in raw.iter().enumerate() {
        let is_bare = is_prefixed && !has_prefix(line) && !has_time(line.unquoted);
        let continues =
            |last: &LogLine| is_bare || is_counter(line.bare) && ends_in_counters(&last.text);
        // Syslog writes a line end within a message as an octal number.
        let text = line.bare.replace("#012", " ");
        match lines.last_mut() {
            Some(last) if !line.bare.is_empty() && continues(last) => {
                let before = text_before(&raw[index - 1]);
                if last.text.ends_with('\\') {
                    last.text.pop();
                } else if !(is_bare && before == HARD_WRAP) {
                    last.text.push(' ');
                }
                last.text += text.trim();
            }
            _ => lines.push(LogLine { number: index + 1, text: text.trim().to_owned() }),
        }
    }
    lines
}

/// Whether a line begins with a time of day: a message of another program in syslog.
fn has_time(line: &str) -> bool {
    let is_time = |word: &str| {
        let mut parts = word.split(':');
        word.len() >= 8 && parts.clone().count() >= 3 && {
            let hour = parts.next().unwrap_or("");
            hour.ends_with(|c: char| c.is_ascii_digit())
                && parts.next().is_some_and(|part| part.len() == 2)
        }
    };
    line.split_whitespace().take(4).any(is_time)
}

/// Columns of the line before a wrapped one.
fn text_before(line: &RawLine<'_>) -> usize {
    line.unquoted.chars().count()
}

/// Whether a line begins like the middle of a list: `inactive_file:1167040kB`, `(U) 6*128kB`.
fn is_counter(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or("");
    let is_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    if let Some((name, value)) = word.split_once(':') {
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase());
        // A total in pages, not an amount in kB, begins the list of totals.
        let is_first_total = name == "active_anon" && !value.contains("kB");
        return is_name && !is_first_total && is_digit(value);
    }
    let types = word.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let is_block =
        word.split_once('*').is_some_and(|(n, size)| is_digit(n) && size.ends_with("kB"));
    is_block || types.is_some_and(|types| types.bytes().all(|byte| byte.is_ascii_uppercase()))
}

fn ends_in_counters(line: &str) -> bool {
    let last = line.split_whitespace().last().unwrap_or("");
    last.contains(':') || last.ends_with("kB") || last.starts_with('(')
}

/// The line without its prefixes.
fn bare(line: &str) -> &str {
    let mut rest = line.trim_start();
    for mark in ["kernel: ", "kernel:\t"] {
        if let Some((before, after)) = rest.split_once(mark) {
            if before.len() <= HARD_WRAP && !before.contains('=') {
                rest = after.trim_start_matches([':', ' ']);
            }
        }
    }
    loop {
        rest = rest.trim_start();
        let Some(after) = bracketed(rest, '<', '>').or_else(|| bracketed(rest, '[', ']')) else {
            return rest;
        };
        rest = after;
    }
}

/// The text after a prefix in brackets: a level, a time, a caller.
fn bracketed(text: &str, open: char, close: char) -> Option<&str> {
    let (inner, after) = text.strip_prefix(open)?.split_once(close)?;
    let inner = inner.trim();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Some vendors write the CPU before the time: `[2-3219.1870]`.
    let is_time = inner
        .split_once('.')
        .is_some_and(|(s, us)| is_number(s.rsplit('-').next().unwrap_or(s)) && is_number(us));
    let is_date = inner.len() >= 15 && inner.matches(':').count() == 2;
    let is_caller = inner.starts_with(['T', 'C']) && is_number(inner[1..].trim());
    let is_prefix = match open {
        '<' => is_number(inner),
        _ => is_time || is_date || is_caller,
    };
    is_prefix.then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn prefixes_are_removed() {
        for line in [
            "Mem-Info: x",
            "[41923.154238] Mem-Info: x",
            "<4>[    1.5] Mem-Info: x",
            "[Thu Jun 13 04:36:30 2019] Mem-Info: x",
            "Jun 13 04:36:30 ip-172-19-13-114 kernel: [ 12.25] Mem-Info: x",
            "2024-01-02T03:04:05+00:00 host kernel: Mem-Info: x",
            "> > [   12.345678][ T1234] Mem-Info: x",
            "[    5.0][   C3] Mem-Info: x\r",
            "Dec 27 09:19:05 2013 kernel: : [277622.359064] Mem-Info: x",
            "[2-3219.1870] Mem-Info: x",
        ] {
            assert_eq!(texts(line), ["Mem-Info: x"], "{line}");
        }
        assert_eq!(texts("[ 1234]     0  1234 sh"), ["[ 1234]     0  1234 sh"]);
        assert_eq!(texts("[ pid ]   uid"), ["[ pid ]   uid"]);
    }

    #[test]
    fn wrapped_lines_are_joined() {
        let long = format!("[  1.5] Node 0 {}", "x".repeat(HARD_WRAP - 15));
        let text = format!("[  1.0] a b\nc d\n[  1.2] e\n{long}\nyz 1\n[  2.0] f\n[  3.0] g\n");
        let joined = format!("Node 0 {}yz 1", "x".repeat(HARD_WRAP - 15));
        assert_eq!(texts(&text), ["a b c d", "e", joined.as_str(), "f", "g"]);
        assert_eq!(lines(&text)[2].number, 4);
        let zone = "Normal free:4kB high:3kB\nactive_anon:8kB inactive_anon:4kB\nactive_anon:5\n";
        assert_eq!(
            texts(zone),
            ["Normal free:4kB high:3kB active_anon:8kB inactive_anon:4kB", "active_anon:5"]
        );
        let plain = "active_anon:1 inactive_anon:2\nactive_file:3\nNode 0 DMA free:4kB\nmin:5kB\nother text\n";
        let joined = [
            "active_anon:1 inactive_anon:2 active_file:3",
            "Node 0 DMA free:4kB min:5kB",
            "other text",
        ];
        assert_eq!(texts(plain), joined);
    }
}
