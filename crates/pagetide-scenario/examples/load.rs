fn main() {
    for arg in std::env::args().skip(1) {
        match pagetide_scenario::load::load(arg.as_ref(), &Default::default()) {
            Ok(s) => println!("{arg}: ok {} variants {:?}", s.variants.len(), s),
            Err(e) => print!("{}", e.render(pagetide_scenario::diagnostic::Style::Plain)),
        }
    }
}
