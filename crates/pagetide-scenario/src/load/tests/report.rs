//! Rows and published figures: keys that exist, values with units.

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
        "`a b` is no metric",
        "keys are NAME, TASK.NAME, TASK.PHASE.NAME or GROUP.NAME",
    );
    expect(
        "[report]\nrows = [\"pgfault\", \"pgfault\"]\n",
        2,
        20,
        "\"pgfault\"",
        "the row `pgfault` is there twice",
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
