//! Which files of a crate import which: the rooms of the core, and import cycles of every crate.
//!
//! An import of `crate::a::b::Item` is an edge from the importing file to the file that defines the
//! item; a re-export (`pub use`) is followed to the definition. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate with its largest number of files that import each other in a cycle.
const LARGEST_CYCLES: [(&str, usize); 15] = [
    ("pagetide", 2),
    ("pagetide-bench", 1),
    ("pagetide-core", 10),
    ("pagetide-export", 1),
    ("pagetide-guest", 3),
    ("pagetide-html", 1),
    ("pagetide-lab", 5),
    ("pagetide-linux", 1),
    ("pagetide-py", 4),
    ("pagetide-scenario", 5),
    ("pagetide-sim", 6),
    ("pagetide-testing", 1),
    ("pagetide-trace", 3),
    ("pagetide-verify", 1),
    ("pagetide-watcher", 1),
];

/// The rooms, lowest first. A room may import the rooms before it.
const ROOMS: [&str; 14] = [
    "units",
    "stats",
    "config",
    "ageing",
    "frames",
    "groups",
    "slab",
    "swap",
    "audit",
    "compaction",
    "reclaim",
    "control",
    "interface",
    "process",
];

/// Imports of a higher room, with the reason. Each room may also import `interface`: its operations
/// are methods of the machine's state, which is there.
const UPWARD: [(&str, &str, &str); 9] = [
    ("stats", "frames", "a tracepoint prints the flags of an allocation"),
    ("ageing", "frames", "lists link page descriptors"),
    ("ageing", "groups", "each group has its lists"),
    ("ageing", "reclaim", "a scan serves the goal of a reclaimer"),
    ("frames", "groups", "a request charges its group before it takes a frame"),
    ("frames", "compaction", "the slow path compacts; a zone has its state of compaction"),
    ("frames", "reclaim", "the slow path reclaims; a node has its kswapd"),
    ("groups", "slab", "a group has its caches and its stocks of objects"),
    ("groups", "reclaim", "a charge above a limit reclaims"),
];

/// Source texts by module path (`reclaim::kswapd`), without comments and tests.
fn sources(of: &str) -> BTreeMap<String, String> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    let mut sources = BTreeMap::new();
    for path in found {
        let relative = path.strip_prefix(&root).unwrap().with_extension("");
        let parts: Vec<&str> = relative.iter().map(|part| part.to_str().unwrap()).collect();
        if parts.contains(&"tests") || parts == ["lib"] {
            continue;
        }
        let module = parts.join("::");
        let module = module.strip_suffix("::mod").unwrap_or(&module).to_string();
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        // An import for documentation only is not a dependency.
        let mut is_for_docs = false;
        let code = text.lines().filter(|line| {
            is_for_docs |= line.trim() == "#[cfg(doc)]";
            let is_code = !is_for_docs && !line.trim_start().starts_with("//");
            is_for_docs &= !line.ends_with(';');
            is_code
        });
        let code: Vec<&str> = code.collect();
        sources.insert(module, code.join("\n"));
    }
    sources
}

/// The paths of a use tree: `a::{b, c::d}` gives `a::b` and `a::c::d`.
fn paths(tree: &str, prefix: &str, out: &mut Vec<String>) {
    let tree = tree.trim();
    if let Some((head, tail)) = tree.split_once('{') {
        // A line of a string literal can begin like an import.
        let Some(inner) = tail.trim_end().strip_suffix('}') else { return };
        let (mut depth, mut start) = (0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    paths(&inner[start..at], &format!("{prefix}{head}"), out);
                    start = at + 1;
                }
                _ => {}
            }
        }
        paths(&inner[start..], &format!("{prefix}{head}"), out);
    } else if !tree.is_empty() {
        out.push(format!("{prefix}{}", tree.split(" as ").next().unwrap()));
    }
}

/// A path from the top of the crate; `None` for other crates.
fn absolute(path: &str, module: &str, sources: &BTreeMap<String, String>) -> Option<String> {
    if let Some(rest) = path.strip_prefix("crate::") {
        return Some(rest.to_string());
    }
    let mut at: Vec<&str> = module.split("::").collect();
    let mut rest = path;
    if let Some(own) = rest.strip_prefix("self::") {
        return Some(format!("{module}::{own}"));
    }
    if !rest.starts_with("super::") {
        let child = format!("{module}::{}", rest.split("::").next().unwrap());
        return sources.contains_key(&child).then(|| format!("{module}::{rest}"));
    }
    while let Some(up) = rest.strip_prefix("super::") {
        at.pop();
        rest = up;
    }
    at.push(rest);
    Some(at.join("::"))
}

/// Splits `use` items off a source: re-exports, other imports, and the rest.
fn uses(code: &str) -> (Vec<String>, Vec<String>, String) {
    let (mut public, mut private, mut left) = (Vec::new(), Vec::new(), String::new());
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let begins = rest[..at].rsplit('\n').next().unwrap().trim_start().to_string();
        let is_use = begins.is_empty() || begins.starts_with("pub");
        if !is_use {
            left.push_str(&rest[..at + 4]);
            rest = &rest[at + 4..];
            continue;
        }
        left.push_str(&rest[..at]);
        let end = at + rest[at..].find(';').expect("a use item ends");
        let tree = rest[at + 4..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let mut found = Vec::new();
        paths(&tree, "", &mut found);
        if begins.is_empty() { &mut private } else { &mut public }.append(&mut found);
        rest = &rest[end + 1..];
    }
    left.push_str(rest);
    (public, private, left)
}

fn imports(of: &str) -> BTreeMap<String, BTreeSet<String>> {
    let sources = sources(of);
    let mut exported = BTreeMap::new();
    for (module, code) in &sources {
        for path in uses(code).0 {
            if let Some(target) = absolute(&path, module, &sources) {
                let name = path.rsplit("::").next().unwrap();
                exported.insert(format!("{module}::{name}"), target);
            }
        }
    }
    let file_of = |path: &str| -> Option<String> {
        let mut path = path.to_string();
        while let Some(target) = exported.get(&path) {
            path = target.clone();
        }
        let parts: Vec<&str> = path.split("::").collect();
        (1..=parts.len()).rev().map(|n| parts[..n].join("::")).find(|m| sources.contains_key(m))
    };
    let mut imports = BTreeMap::new();
    for (module, code) in &sources {
        let (_, private, left) = uses(code);
        let mut named = private;
        for (at, _) in left.match_indices("crate::") {
            let path = left[at..].chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c));
            named.push(path.collect());
        }
        let targets = named.iter().filter_map(|path| absolute(path, module, &sources));
        let mut files: BTreeSet<String> = targets.filter_map(|path| file_of(&path)).collect();
        files.remove(module);
        imports.insert(module.clone(), files);
    }
    imports
}

/// All files reachable from a file by imports.
fn reached(imports: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut todo = vec![from.to_string()];
    while let Some(at) = todo.pop() {
        for next in &imports[&at] {
            if reached.insert(next.clone()) {
                todo.push(next.clone());
            }
        }
    }
    reached
}

#[test]
fn import_cycles_have_bounds() {
    let mut wrong = Vec::new();
    for (of, most) in LARGEST_CYCLES {
        let imports = imports(of);
        assert!(!imports.is_empty(), "{of} has sources");
        let reached: BTreeMap<&String, BTreeSet<String>> =
            imports.keys().map(|module| (module, reached(&imports, module))).collect();
        let cycles = imports.keys().map(|module| -> Vec<_> {
            reached[module].iter().filter(|other| reached[*other].contains(module)).collect()
        });
        let largest = cycles.max_by_key(Vec::len).unwrap();
        // A crate without cycles has none of two files.
        let found = largest.len().max(1);
        if found != most {
            wrong.push(format!("{of}: {found} files import each other, not {most}: {largest:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rooms_import_the_rooms_below() {
    let place = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut upward = BTreeSet::new();
    for (module, files) in imports("pagetide-core") {
        let room = module.split("::").next().unwrap();
        assert!(place(room).is_some(), "{module} is in no room");
        for file in files {
            let other = file.split("::").next().unwrap().to_string();
            if place(&other) > place(room) && other != "interface" {
                upward.insert((room.to_string(), other));
            }
        }
    }
    let allowed: BTreeSet<_> =
        UPWARD.iter().map(|(from, to, _)| (from.to_string(), to.to_string())).collect();
    assert_eq!(upward, allowed);
}

/// Files outside the room `ageing` that name a list of the two-list LRU: they declare the kernel's
/// counters and the order of /proc/vmstat and memory.stat.
const NAMES_LISTS: [&str; 3] = ["control::proc", "control::proc::memory_stat", "stats::vmstat"];

#[test]
fn only_ageing_names_the_lists() {
    let names = ["InactiveAnon", "ActiveAnon", "InactiveFile", "ActiveFile"];
    let snake = ["active_anon", "active_file"];
    let sources = sources("pagetide-core");
    let found: Vec<&str> = sources
        .iter()
        .filter(|(module, _)| !module.starts_with("ageing"))
        .filter(|(_, code)| names.iter().chain(&snake).any(|name| code.contains(name)))
        .map(|(module, _)| module.as_str())
        .collect();
    assert_eq!(found, NAMES_LISTS);
}
