//! Checks that docs/metrics.md matches the declarations. After a change of them, regenerate it:
//! `PAGETIDE_ACCEPT=1 cargo test -p pagetide-scenario --test metrics_doc`.

use pagetide_core::vmstat::{Event, NodeStat};
use pagetide_scenario::metric::better;
use pagetide_scenario::metric::declared::{self, Declared, OF_CACHES};
use pagetide_scenario::metric::{Kind, COUNTED};
use pagetide_scenario::record::Unit;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Metrics

Generated from the declarations in the source; do not edit (see `crates/pagetide-scenario/tests/metrics_doc.rs`).
[scenario.md](scenario.md#report) explains how a key consists of a scope and a name. The source \"Pagetide\" means
that no kernel reports the metric. \"Better\" is the direction that verdicts and `find` use: less or more is better;
for \"work\" less is cheaper, but not a goal. Levels have no direction. `done.` is the machine from the start of the
run until the last task that the run waits for has done its work; its program has not yet ended and freed its memory.
";

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Pages => "pages",
        Unit::Bytes => "bytes",
        Unit::Kilobytes => "kB",
        Unit::Seconds => "seconds",
        Unit::BytesPerSecond => "bytes/s",
        Unit::PerSecond => "1/s",
        Unit::Percent => "per cent",
        Unit::Ratio => "ratio",
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Machine => "machine",
        Kind::Idle => "`idle.`: from boot to the start of the run, on a real kernel",
        Kind::Done => "`done.`: until all work is done",
        Kind::Shrunk => "`shrunk.`: after the run, with shrunk caches",
        Kind::Disk => "disk",
        Kind::Task => "task",
        Kind::Phase => "phase",
        Kind::Group => "group",
        Kind::PhaseGroup => "group during a phase",
    }
}

fn row(text: &mut String, metric: &Declared) {
    let of: Vec<&str> = metric.of.iter().map(|of| kind(*of)).collect();
    let Declared { name, source, about, .. } = metric;
    let (unit, of) = (unit(metric.unit), of.join(", "));
    let better = metric.better.word();
    writeln!(text, "| `{name}` | {unit} | {of} | {better} | {source} | {about} |").unwrap();
}

fn expected() -> String {
    let mut text = HEAD.to_owned();
    text +=
        "\n## Declared here\n\n| name | unit | scope | better | source | meaning |\n|---|---|---|---|---|---|\n";
    declared::ALL.iter().for_each(|metric| row(&mut text, metric));
    for what in OF_CACHES {
        let of = "machine, phase, `idle.`, `shrunk.`";
        let about = "that column, for each cache used by file names and pipes; only if a task makes one of these";
        writeln!(text, "| `slabinfo.CACHE.{what}` | count | {of} | | /proc/slabinfo | {about} |")
            .unwrap();
    }
    text += "\n## Events of /proc/vmstat\n\nCounts for the machine, phases and `done.`; `pgpgin` and `pgpgout` are in kB. Groups have the marked events too, as in\n\
             memory.stat; they also have the sums `pgscan` and `pgsteal` over kswapd and tasks.\n\n\
             | name | groups | better | meaning |\n|---|---|---|---|\n";
    for event in Event::ALL {
        let of_groups = if COUNTED.contains(&event) { "yes" } else { "" };
        let better = better::of_event(event).word();
        writeln!(text, "| `{}` | {of_groups} | {better} | {} |", event.name(), event.about())
            .unwrap();
    }
    text += "\n## Levels of /proc/vmstat\n\nIn pages, for the machine at the end of the run, for phases at their end, and for `done.`. The machine also has `nr_free_pages`,\n\
             `nr_free_blocks_ORDER` (/proc/buddyinfo, sum over all zones; for each zone `buddyinfo.nodeN.ZONE.nr_free_blocks_ORDER`),\n\
             `nr_zone_*`, `nr_mlock`, `workingset_nodes`, `nr_dirty_threshold` and `nr_dirty_background_threshold`. With a registered policy\n\
             it also has `plugin_*`: how often the policy gave an invalid answer ([add-a-policy.md](add-a-policy.md)).\n\n| name | meaning |\n|---|---|\n";
    for stat in NodeStat::ALL {
        writeln!(text, "| `{}` | {} |", stat.name(), stat.about()).unwrap();
    }
    text
}

#[test]
fn the_document_is_what_the_declarations_say() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let expected = expected();
    if std::env::var_os("PAGETIDE_ACCEPT").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "docs/metrics.md is stale: regenerate it with PAGETIDE_ACCEPT=1");
}
