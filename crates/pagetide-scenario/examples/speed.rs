use pagetide_scenario::{load::load_str, workload::Program, op::Op};
fn main() {
    let text = r#"
[machine]
memory = "4GiB"
[[file]]
name = "f"
size = "4GiB"
[[task]]
name = "seq"
workload = "touch"
size = "4GiB"
passes = 100
[[task]]
name = "scat"
workload = "touch"
size = "4GiB"
order = "scattered"
passes = 100
[[task]]
name = "rand"
workload = "touch"
size = "4GiB"
order = "random"
passes = 100
[[task]]
name = "zipf"
workload = "touch"
size = "4GiB"
order = "zipf"
passes = 100
[[task]]
name = "zipf99"
workload = "touch"
size = "4GiB"
order = "zipf"
exponent = 0.99
passes = 100
[[task]]
name = "set"
workload = "working-set"
anon = "4GiB"
file = "f"
accesses = 100000000
"#;
    let s = load_str("speed.toml", text, "".as_ref(), &Default::default()).unwrap();
    for t in 0..s.variants[0].setup.tasks.len() {
        let mut p = Program::new(&s.variants[0].setup, t, 1).unwrap();
        let start = std::time::Instant::now();
        let (mut n, mut sum) = (0u64, 0u64);
        while let Some(op) = p.next_op().unwrap() {
            n += 1;
            if let Op::Access { page, .. } = op { sum = sum.wrapping_add(page); }
        }
        println!("{} {:.2} ns/op ({n} {sum})", s.variants[0].setup.tasks[t].name, start.elapsed().as_nanos() as f64 / n as f64);
    }
}
