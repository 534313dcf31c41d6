//! Tasks and their phases: valid workloads, consistent regions, reachable ends.

use super::*;

#[test]
fn workloads_must_fit() {
    let task = "[[task]]\nname = \"b\"\n";
    let mapped = "workload = \"mapped-read\"\nfile = \"data\"\n";
    expect(
        &format!("{task}{mapped}size = \"65MiB\"\n"),
        5,
        8,
        "\"65MiB\"",
        "the mapping has 65MiB, but the file has only 64MiB",
        "make the file larger, or map less of it",
    );
    expect(
        &format!("{task}workload = \"touch\"\nsize = \"9TiB\"\n"),
        4,
        8,
        "\"9TiB\"",
        "the task maps 9TiB, more than the address space",
        "a task can map at most 8TiB in total",
    );
    expect(
        &format!("{task}workload = \"touch\"\nsize = 0\n"),
        4,
        8,
        "0",
        "the region has size 0",
        "write size = \"64MiB\", for example",
    );
    expect(
        "[[file]]\nname = \"big\"\nsize = \"9TiB\"\n",
        3,
        8,
        "\"9TiB\"",
        "the file is too large",
        "a file has at most 8TiB",
    );
    let write = "workload = \"file-write\"\nfile = \"data\"\n";
    expect(
        &format!("{task}{write}total = \"8TiB\"\n"),
        5,
        9,
        "\"8TiB\"",
        "the appends make the file too large",
        "a file has at most 8TiB",
    );
    expect(
        &format!("{task}{write}total = 1\nblock = 0\n"),
        6,
        9,
        "0",
        "not a valid size of a read() or write() call",
        "write a size from 1 byte to 1GiB",
    );
    // Two regions that are valid only one at a time.
    let phase = |name: &str| {
        format!(
            "[[task.phase]]\nname = \"{name}\"\nworkload = \"touch\"\nregion = \"{name}\"\n\
            size = \"5TiB\"\n"
        )
    };
    expect(
        &format!("{task}{}{}", phase("p"), phase("q")),
        12,
        8,
        "\"5TiB\"",
        "the task maps 10TiB, more than the address space",
        "a task can map at most 8TiB in total",
    );
}

#[test]
fn phases_must_agree_on_their_regions() {
    let phases = |first: &str, second: &str| {
        format!(
            "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p\"\n{first}\
            [[task.phase]]\nname = \"q\"\n{second}"
        )
    };
    let mapped = "workload = \"mapped-read\"\nfile = \"data\"\nregion = \"r\"\n";
    let hint = "phases that name the same region share one mapping: use another `region`";
    expect(
        &phases(mapped, &format!("{mapped}advice = \"random\"\n")),
        12,
        10,
        "\"r\"",
        "the region `r` has other advice in another phase",
        hint,
    );
    let touch = "workload = \"touch\"\nregion = \"r\"\nsize = \"1MiB\"\n";
    expect(
        &phases(mapped, touch),
        11,
        10,
        "\"r\"",
        "the region `r` has another file or none in another phase",
        hint,
    );
    let set = "workload = \"working-set\"\nanon = \"1MiB\"\n";
    expect(
        &phases(&format!("{set}generator_seed = 1\n"), &format!("{set}generator_seed = 2\n")),
        12,
        18,
        "2",
        "the start value differs from that of an earlier phase",
        "leave it out: later phases on the same regions continue the generator",
    );
    sound(&format!("{SOUND}{}", phases(&format!("{set}generator_seed = 1\n"), set)));
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"working-set\"\n",
        3,
        12,
        "\"working-set\"",
        "workload working-set has no memory",
        "add anon = \"1GiB\", or file = \"data\", or both",
    );
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"working-set\"\nanon = \"1MiB\"\n\
        advice = \"random\"\n",
        5,
        10,
        "\"random\"",
        "`advice` needs `file`",
        "add `file` too",
    );
}

#[test]
fn tasks_must_do_something_and_end() {
    expect(
        "[[task]]\nname = \"b\"\n",
        1,
        1,
        "[[task]]",
        "the task does nothing",
        "add workload = \"touch\", for example, or [[task.phase]]",
    );
    expect(
        "[[task]]\nname = \"b\"\nsize = \"1GiB\"\n[[task.phase]]\nname = \"p\"\n\
        workload = \"sleep\"\nduration = \"1s\"\n",
        3,
        1,
        "size",
        "`size` needs a workload",
        "add the key workload = \"mapped-read\" or \"touch\" or \"lock\" or \"advise\"",
    );
    expect(
        "[[task.phase]]\nname = \"p\"\nworkload = \"sleep\"\nduration = \"1s\"\n",
        1,
        1,
        "[[task.phase]]",
        "a task cannot have both a workload and phases",
        "move the task's own workload into a [[task.phase]]",
    );
    expect(
        "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p\"\n",
        3,
        1,
        "[[task.phase]]",
        "the phase has no workload",
        "add workload = \"touch\", for example",
    );
    let writer = "[[task]]\nname = \"b\"\nworkload = \"file-write\"\nfile = \"data\"\n";
    expect(
        writer,
        2,
        8,
        "\"b\"",
        "the task `b` never ends",
        "add total = \"1GiB\" to its file-write, or background = true to the task",
    );
    expect(
        &format!(
            "{writer}background = true\n[[task]]\nname = \"c\"\nafter = \"b\"\n\
        workload = \"sleep\"\nduration = \"1s\"\n"
        ),
        8,
        9,
        "\"b\"",
        "`c` waits for `b`, which never ends",
        "use start = \"1s\", for example",
    );
    expect(
        "background = true\n",
        -3,
        1,
        "[[task]]",
        "all tasks are in the background: the run would end at once",
        "remove `background` from at least one task",
    );
    expect(
        "start = \"1s\"\nafter = \"b\"\n[[task]]\nname = \"b\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\n",
        1,
        9,
        "\"1s\"",
        "a task cannot have both `start` and `after`",
        "with `after`, write `delay` instead of `start`",
    );
    let nothing = &SOUND[..SOUND.find("[[task]]").unwrap()];
    expect_in(
        nothing,
        1,
        1,
        "",
        "the scenario has no task",
        "add a [[task]] with a name and a workload",
    );
    expect(
        "copies = 4096\n[[task]]\nname = \"b\"\nworkload = \"sleep\"\nduration = \"1s\"\n",
        2,
        1,
        "[[task]]",
        "too many tasks",
        "a scenario has at most 4096, copies and threads included",
    );
    expect(
        "[[task]]\nname = \"b\"\ncopies = 4000\n[[task.phase]]\nname = \"p\"\nrepeat = 5\n\
        workload = \"sleep\"\nduration = \"1s\"\n",
        3,
        10,
        "4000",
        "too many phases",
        "a scenario has at most 16384, copies and repeats included",
    );
}

#[test]
fn waiting_in_a_circle() {
    let wait = |name: &str, after: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nafter = \"{after}\"\nworkload = \"sleep\"\n\
            duration = \"1s\"\n"
        )
    };
    let hint = "remove `after` from one of them";
    let text = wait("a", "b") + &wait("b", "c") + &wait("c", "b");
    expect(&text, 8, 9, "\"c\"", "tasks wait for each other: `b` after `c` after `b`", hint);
    expect(&wait("a", "a"), 3, 9, "\"a\"", "tasks wait for each other: `a` after `a`", hint);
    sound(&format!("{SOUND}{}", wait("a", "b") + &wait("b", "c") + &wait("c", "main")));
    expect(
        "[[group]]\nname = \"g\"\nparent = \"h\"\n[[group]]\nname = \"h\"\nparent = \"g\"\n",
        3,
        10,
        "\"h\"",
        "the group `g` is its own ancestor",
        "remove `parent` from one of the groups in the cycle",
    );
}

#[test]
fn a_task_can_run_until_another_has_ended() {
    let endless = "workload = \"file-write\"\nfile = \"data\"\n";
    let scenario = sound(&format!("{SOUND}[[task]]\nname = \"b\"\nuntil = \"main\"\n{endless}"));
    let tasks = &scenario.variants[0].setup.tasks;
    assert_eq!((tasks[1].until, tasks[1].background), (Some(0), true));
    assert_eq!((tasks[0].until, tasks[0].background), (None, false));
    // Waiting for it means waiting for the other task.
    let waits = "[[task]]\nname = \"c\"\nafter = \"b\"\nworkload = \"sleep\"\nduration = \"1s\"\n";
    sound(&format!("{SOUND}[[task]]\nname = \"b\"\nuntil = \"main\"\n{endless}{waits}"));
    let copies = format!("copies = 2\n[[task]]\nname = \"b\"\nuntil = \"main.1\"\n{endless}");
    let scenario = sound(&format!("{SOUND}{copies}"));
    assert_eq!(scenario.variants[0].setup.tasks[2].until, Some(1));
}

#[test]
fn ends_that_make_no_sense() {
    let sleep = "workload = \"sleep\"\nduration = \"1s\"\n";
    let task = |name: &str, keys: &str| format!("[[task]]\nname = \"{name}\"\n{keys}{sleep}");
    expect(
        &task("b", "until = \"mian\"\n"),
        3,
        9,
        "\"mian\"",
        "there is no task `mian`",
        "did you mean `main`?",
    );
    for key in ["until", "after"] {
        expect(
            &task("b", &format!("{key} = \"other.0\"\n")),
            3,
            9,
            "\"other.0\"",
            "there is no task `other.0`",
            "known: `main` and `b`",
        );
    }
    expect(
        &task("b", "until = \"main.0\"\n"),
        3,
        9,
        "\"main.0\"",
        "there is no task `main.0`",
        "`main` has one copy: write until = \"main\"",
    );
    expect(
        &format!("copies = 2\n{}", task("b", "until = \"main\"\n")),
        4,
        9,
        "\"main\"",
        "`main` has several copies",
        "say which: until = \"main.0\", for example",
    );
    let hint = "remove `after` or `until` from one of them";
    expect(
        &task("b", "until = \"b\"\n"),
        3,
        9,
        "\"b\"",
        "tasks wait for each other: `b` until `b`",
        hint,
    );
    let two = task("b", "until = \"c\"\n") + &task("c", "after = \"b\"\n");
    let ring = "tasks wait for each other: `b` until `c` after `b`";
    expect(&two, 3, 9, "\"c\"", ring, hint);
    expect(
        &(task("b", "after = \"main\"\n") + &task("c", "after = \"b\"\nuntil = \"main\"\n")),
        9,
        9,
        "\"main\"",
        "`c` starts only after the end of `main`",
        "it would be stopped at once: use another `until`",
    );
    let endless = "background = true\nworkload = \"file-write\"\nfile = \"data\"\n";
    expect(
        &(format!("[[task]]\nname = \"w\"\n{endless}") + &task("b", "until = \"w\"\n")),
        8,
        9,
        "\"w\"",
        "`b` runs until the end of `w`, which never ends",
        "name a task that ends",
    );
}
