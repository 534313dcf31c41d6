//! Runs the example for embedders; its own assertions are the test.

#[path = "../../examples/embed.rs"]
mod embed;

#[test]
fn two_tenants_find_again_what_they_wrote() {
    embed::main();
}
