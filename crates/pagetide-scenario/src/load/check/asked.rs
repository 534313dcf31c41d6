//! Checks metrics that a command line names against a setup, before anything runs.
//!
//! Invariant: a metric that the simulator records for the setup is accepted.

use super::expect::criterion as checked_criterion;
use super::report::{as_recorded, check_row, ReportKeys};
use crate::load::span::{ProblemSink, SourceSpan, Spanned};
use crate::metric::criterion::{Criterion, Mistake};
use crate::metric::ScopeKind;
use crate::model::Setup;

/// The key in records of a metric. `text` is that key or its full form.
pub fn metric_key(text: &str, setup: &Setup) -> Result<String, Mistake> {
    let known = ReportKeys::of(setup);
    let mut sink = ProblemSink::default();
    check_row(&whole(text), &known, setup, &mut sink);
    mistake(sink).map_or_else(|| Ok(as_recorded(text, &known.names)), Err)
}

/// Whether a record can have a key that is `pattern`, or contains it, or fits it if it has `*`. A
/// pattern may begin with a kind of scope, like a key in full form: `group:*:pgsteal`.
pub fn may_have_metric(pattern: &str, setup: &Setup) -> bool {
    let full = pattern.split_once(':').and_then(|(word, rest)| {
        let kind = ScopeKind::ALL.into_iter().find(|kind| kind.word() == word)?;
        Some((kind, rest.replace(':', ".")))
    });
    let (kind, short) = match full {
        Some((kind, short)) => (Some(kind), short),
        None => (None, pattern.to_owned()),
    };
    let part = if short.contains('*') { short } else { format!("*{short}*") };
    !pattern.is_empty() && ReportKeys::of(setup).may_match(&part, kind, setup)
}

/// Parses a criterion, and checks its metrics and units. Its metrics are keys of records.
pub fn criterion(text: &str, setup: &Setup) -> Result<Criterion, Mistake> {
    let mut sink = ProblemSink::default();
    let criterion = checked_criterion(&whole(text), &ReportKeys::of(setup), setup, &mut sink);
    match (criterion, mistake(sink)) {
        (Some(criterion), None) => Ok(criterion),
        (_, mistake) => Err(mistake.unwrap_or_else(|| Mistake::new("not a criterion", ""))),
    }
}

fn whole(text: &str) -> Spanned<String> {
    Spanned { value: text.to_owned(), span: SourceSpan::default() }
}

fn mistake(sink: ProblemSink) -> Option<Mistake> {
    let first = sink.into_parts().0.into_iter().next()?;
    Some(Mistake::new(first.message, first.hint.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;

    fn setup() -> Setup {
        let task = |name: &str| {
            Builder::new().set("name", name).set("workload", "sleep").set("duration", "1ms")
        };
        let machine = Builder::new().set("machine.memory", "2GiB");
        let group = Builder::new().set("name", "web");
        machine.push("task", task("web")).push("group", group).setup().unwrap()
    }

    #[test]
    fn keys_parts_and_patterns_are_known_before_the_run() {
        let setup = setup();
        for pattern in [
            "walltime",
            "web.walltime",
            "alltim",
            "pgscan*",
            "*",
            "machine:pgfault",
            "group:web:memory.current",
            "group:*:pgsteal_kswapd",
            "slabinfo.dentry.num_objs",
            "done",
        ] {
            assert!(may_have_metric(pattern, &setup), "{pattern}");
        }
        for pattern in ["pgscam", "wbe.walltime", "", "group:*:walltime", "web.pgscam*"] {
            assert!(!may_have_metric(pattern, &setup), "{pattern}");
        }
        assert_eq!(metric_key("task:web:walltime", &setup).unwrap(), "web.walltime");
        let mistake = metric_key("web.waltime", &setup).unwrap_err();
        assert_eq!(mistake.hint, "did you mean `walltime`?");
    }

    #[test]
    fn a_criterion_is_checked_and_has_keys_of_records() {
        let setup = setup();
        let read = |text: &str| criterion(text, &setup);
        let known = read("task:web:walltime <= 10ms and allocstall == 0").unwrap();
        assert_eq!(known.metrics().collect::<Vec<_>>(), ["web.walltime", "allocstall"]);
        assert_eq!(read("alocstall == 0").unwrap_err().hint, "did you mean `allocstall`?");
        assert!(read("web.walltime <= 1.1 * before").is_ok());
        assert!(read("web.walltime <= 5MiB").unwrap_err().message.contains("mixes units"));
        assert!(read("pgscan* == 0").unwrap_err().message.contains("is a pattern"));
        assert!(read("nonsense").is_err());
    }
}
