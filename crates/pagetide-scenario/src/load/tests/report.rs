//! Rows and published figures: existing keys, values with units.

use super::*;

#[test]
fn reports_and_references() {
    expect(
        "[report]\nrows = [\"man.walltime\"]\n",
        2,
        9,
        "\"man.walltime\"",
        "no task or group is called `man`",
        "did you mean `main`?",
    );
    expect(
        "[report]\nrows = [\"a b\"]\n",
        2,
        9,
        "\"a b\"",
        "`a b` is not a metric",
        "keys are NAME, TASK.NAME, TASK.PHASE.NAME, GROUP.NAME or TASK.PHASE.GROUP.NAME; \
         `pagetide metrics` lists the names",
    );
    expect(
        "[report]\nrows = [\"pgfault\", \"pgfault\"]\n",
        2,
        20,
        "\"pgfault\"",
        "the row `pgfault` is written twice",
        "keep one of them",
    );
    expect(
        "[reference]\nsource = \"s\"\ndefualt.pgfault = 1\n",
        3,
        1,
        "defualt",
        "there is no variant `defualt`",
        "did you mean `default`?",
    );
    expect(
        "[reference]\ndefault.pgfault = 1\n",
        1,
        1,
        "[reference]",
        "the reference has no `source`",
        "add source = \"where the figures were published\"",
    );
    expect(
        "[reference]\nsource = \"s\"\ndefault.main.walltime = \"5 msec\"\n",
        3,
        25,
        "\"5 msec\"",
        "`5 msec`: unit `msec` is not used here",
        "did you mean `5ms`?",
    );
    expect(
        "[reference]\nsource = \"s\"\ndefault.pgfault = nan\n",
        3,
        19,
        "nan",
        "expected a number, found a float",
        "or a text with a unit: \"503ms\", \"64MiB\"",
    );
}

#[test]
fn rows_are_metrics_that_there_are() {
    let group = "[[group]]\nname = \"web\"\n";
    sound(&format!(
        "{SOUND}{group}[report]\nrows = [\"psi.memory.some\", \"peak.slab\", \"psi*\", \"*.walltime\", \
        \"main.alloc_*\", \"web.memory.*\", \"nr_free_blocks_9\", \"web.pgsteal\", \"machine:pgfault\", \
        \"main.main.web.anon\", \"slabinfo.dentry.num_objs\", \"slabinfo.*\", \
        \"main.main.buddyinfo.node0.DMA32.nr_free_blocks_9\", \"buddyinfo.*\", \"done.pgfree\", \"done.pg*\"]\n\
        [reference]\nsource = \"s\"\ndefault.\"psi.memory.some\" = 1\n"
    ));
    let mistake = |row: &str, message: &str, hint: &str| {
        let text = format!("[report]\nrows = [\"{row}\"]\n");
        expect(&text, 2, 9, &format!("\"{row}\""), message, hint);
    };
    let near = |name: &str| format!("did you mean `{name}`?");
    mistake("pgscam_kswapd", "the machine has no metric `pgscam_kswapd`", &near("pgscan_kswapd"));
    mistake("psi.memory.sone", "no task or group is called `psi`", &near("psi.memory.some"));
    let keys = "keys are NAME, TASK.NAME, TASK.PHASE.NAME, GROUP.NAME or TASK.PHASE.GROUP.NAME; \
        `pagetide metrics` lists the names";
    mistake("main.waltime", "`main.waltime` is not a metric", keys);
    mistake("main.main.pgfalt", "`main.main` has no metric `pgfalt`", &near("pgfault"));
    let none = "`pagetide metrics` lists the metrics; keys are NAME, TASK.NAME, GROUP.NAME";
    mistake("frobs*", "no metric matches `frobs*`", none);
    mistake("web.memory.*", "no metric matches `web.memory.*`", none);
}

#[test]
fn patterns_are_looked_for_in_all_of_thousands() {
    let many = "[machine]\nmemory = \"4GiB\"\n[[group]]\nname = \"g\"\ncopies = 1000\n\
        [[task]]\nname = \"t\"\ngroup = \"g\"\ncopies = 1000\nworkload = \"touch\"\nsize = \"64KiB\"\n";
    let load = |rows: &str| {
        let text = format!("{many}[report]\nrows = [{rows}]\n");
        load_str("test", &text, Path::new("."), &Overrides::default())
    };
    let began = std::time::Instant::now();
    // Includes the last group in the last phase.
    let sound = ["t.999.wall*", "g.999.*", "*.999.main.g.999.pg*an", "t.main.g.anon*", "*", "**"];
    for row in sound {
        assert!(load(&format!("\"{row}\"")).is_ok(), "{row}");
    }
    for row in ["t.1000.*", "g.1000*", "zzzz*", "*.main.h.*", "t.*.walltimes"] {
        assert!(load(&format!("\"{row}\"")).is_err(), "{row}");
    }
    // Without the merging of rests, each pattern without a match took seconds.
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}
