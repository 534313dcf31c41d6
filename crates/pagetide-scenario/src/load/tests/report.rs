//! Rows of reports in scenarios with thousands of tasks and groups.

use super::*;

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
