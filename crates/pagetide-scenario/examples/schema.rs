fn main() { println!("{:#}", pagetide_scenario::schema::schema()); }
