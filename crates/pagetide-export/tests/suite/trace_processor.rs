//! Perfetto's trace processor, if installed (`scripts/trace_processor/install.sh`).

use super::{ran, SCENARIO};
use pagetide_testing::directory::TestDir;
use pagetide_testing::root;
use std::process::Command;

#[test]
fn perfetto_itself_reads_the_trace() {
    let scripts = root().join("scripts/trace_processor");
    let installed = Command::new(scripts.join("query.py")).arg("--is-installed").status();
    if !installed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no trace processor; scripts/trace_processor/install.sh gets it");
        return;
    }
    let ran = ran(SCENARIO);
    let place = TestDir::with("out.pftrace", &ran.perfetto);
    let queries = [
        "select count(*) from stats where value > 0 and severity in ('error', 'data_loss')",
        "select count(*) from slice where dur < 0",
        "select count(*) from slice where name = 'request'",
        "select cast(max(value) as int) from counter c join counter_track t on c.track_id = t.id \
         where t.name = 'pgmajfault'",
        "select count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id \
         where a.name != 'mm_vmscan_wakeup_kswapd' or b.name != 'balance_pgdat' or a.ts > b.ts",
        "select count(*) > 0 from flow",
        "select count(*) from thread join process using (upid) where process.name = '/master' \
         and thread.name in ('web', 'web 1')",
        "select count(*) > 100 from sched join thread using (utid) where thread.name = 'slave'",
    ];
    let mut query = Command::new(scripts.join("query.py"));
    let output = query.arg(place.path("out.pftrace")).args(queries).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let majors = ran.record.metrics["pgmajfault"].value.to_string();
    let answers: Vec<&str> = said.lines().collect();
    assert_eq!(answers, ["0", "0", "200", &majors, "0", "1", "2", "1"]);
}
