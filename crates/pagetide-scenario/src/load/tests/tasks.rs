//! Ends of tasks.

use super::*;

#[test]
fn a_task_can_run_until_another_has_ended() {
    let endless = "workload = \"file-write\"\nfile = \"data\"\n";
    let scenario = sound(&format!("{SOUND}[[task]]\nname = \"b\"\nuntil = \"main\"\n{endless}"));
    let tasks = &scenario.variants[0].setup.tasks;
    assert_eq!((tasks[1].until, tasks[1].background), (Some(0), true));
    assert_eq!((tasks[0].until, tasks[0].background), (None, false));
    let copies = format!("copies = 2\n[[task]]\nname = \"b\"\nuntil = \"main.1\"\n{endless}");
    let scenario = sound(&format!("{SOUND}{copies}"));
    assert_eq!(scenario.variants[0].setup.tasks[2].until, Some(1));
}
