//! docs/metrics.md is what the declarations say. After a change of them, write it anew:
//! `PAGETIDE_ACCEPT=1 cargo test -p pagetide-scenario --test metrics_doc`.

use pagetide_core::vmstat::{Event, NodeStat};
use pagetide_scenario::metric::better;
use pagetide_scenario::metric::declared::{self, Declared, OF_CACHES};
use pagetide_scenario::metric::{Kind, COUNTED};
use pagetide_scenario::record::Unit;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Metrics

Made of the declarations in the source; do not edit (`crates/pagetide-scenario/tests/metrics_doc.rs` says how it is written).
[scenario.md](scenario.md#report) tells how a key is made of a name and of what it is of. \"Pagetide\" as the source: no kernel
says it. \"Better\" is the direction by which verdicts say what is gained, and `find` what got worse: less or more of it; of
\"work\" less is cheaper, but no aim in itself. Levels are neither. `done.` is the machine from the begin of the run until
the last task that the run waits for has done its work, before its program ends and gives its memory back.
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
        Kind::Idle => "`idle.`: before a kernel's run, since boot",
        Kind::Done => "`done.`: until the work is done",
        Kind::Shrunk => "`shrunk.`: after the run, caches shrunk",
        Kind::Disk => "disk of the guest",
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
        "\n## Declared here\n\n| name | unit | of | better | source | what it is |\n|---|---|---|---|---|---|\n";
    declared::ALL.iter().for_each(|metric| row(&mut text, metric));
    for what in OF_CACHES {
        let of = "machine, phase, `idle.`, `shrunk.`";
        let about = "that column, of each cache that names and pipes are made of, if some task makes either";
        writeln!(text, "| `slabinfo.CACHE.{what}` | count | {of} | | /proc/slabinfo | {about} |")
            .unwrap();
    }
    text += "\n## Events of /proc/vmstat\n\nOf the machine, of phases and of `done.`, in counts; `pgpgin` and `pgpgout` in kB. Those marked are of groups, \
             too, as in\nmemory.stat; groups also have the sums `pgscan` and `pgsteal` of kswapd's part and that of tasks.\n\n\
             | name | groups | better | what it counts |\n|---|---|---|---|\n";
    for event in Event::ALL {
        let of_groups = if COUNTED.contains(&event) { "yes" } else { "" };
        let better = better::of_event(event).word();
        writeln!(text, "| `{}` | {of_groups} | {better} | {} |", event.name(), event.about())
            .unwrap();
    }
    text += "\n## Levels of /proc/vmstat\n\nOf the machine at the end, of phases when they end and of `done.`, in pages. The machine has besides \
             `nr_free_pages`,\n`nr_free_blocks_ORDER` (/proc/buddyinfo, all zones together;\nof each zone: `buddyinfo.nodeN.ZONE.nr_free_blocks_ORDER`), `nr_zone_*`, `nr_mlock`, \
             `workingset_nodes` and\n`nr_dirty_threshold`, `nr_dirty_background_threshold`; with a policy of its own also `plugin_*`, how often\n\
             the policy gave an answer that cannot be ([add-a-policy.md](add-a-policy.md)).\n\n| name | what it is |\n|---|---|\n";
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
    assert!(found == expected, "docs/metrics.md is stale: PAGETIDE_ACCEPT=1 writes it anew");
}
