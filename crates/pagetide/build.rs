//! Lists the shipped experiments for `src/shipped.rs`, so that the binary contains them.
//!
//! All `.toml` and `.ptt` files below `experiments/` are included, under their relative paths. The
//! directory is a link to the tree's `experiments/`, so that a package of this crate contains the
//! files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = fs::canonicalize(manifest.join("experiments"))?;
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    // The order of directory entries is arbitrary, so sort. Files at the top come first in lists.
    files.sort_by_key(|file| (file.components().count(), file.with_extension("")));

    let mut code = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).expect("found below it");
        let name = name.to_str().expect("shipped files have plain names").replace('\\', "/");
        let path = fs::canonicalize(&file)?;
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),").expect("writing to a string");
    }
    code.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("shipped.rs"), code)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "toml" || e == "ptt") {
            files.push(path);
        }
    }
    Ok(())
}
