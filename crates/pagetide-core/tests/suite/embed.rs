//! Runs the example for embedders; its own assertions are the test.

#[path = "../../examples/embed.rs"]
mod example;

#[test]
fn two_tenants_find_again_what_they_wrote() {
    example::main();
}
