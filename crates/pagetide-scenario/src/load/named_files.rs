//! The files that a scenario names by path: bases, traces, object mixes, recorded latencies.
//!
//! Invariant: a file is read from the path in the scenario, unless a replacement path is given for
//! it. A worker on another computer gives such paths for its copies of the files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Replacement paths, and the paths used so far.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles {
    elsewhere: BTreeMap<PathBuf, PathBuf>,
    named: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl NamedFiles {
    /// Replacement paths: (the scenario's path joined to its base directory) -> (the file).
    pub fn elsewhere(files: BTreeMap<PathBuf, PathBuf>) -> NamedFiles {
        NamedFiles { elsewhere: files, named: Arc::default() }
    }

    /// All paths that scenarios have named so far, replaced or not.
    pub fn named(&self) -> BTreeSet<PathBuf> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The path to read the file at `full` from.
    pub(crate) fn find(&self, full: PathBuf) -> PathBuf {
        let there = self.elsewhere.get(&full).unwrap_or(&full).clone();
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(full);
        there
    }
}

/// Compares the replacement paths only; the record of used paths does not matter.
impl PartialEq for NamedFiles {
    fn eq(&self, other: &NamedFiles) -> bool {
        self.elsewhere == other.elsewhere
    }
}

impl Eq for NamedFiles {}

/// The text of a file that a scenario names, at most one byte more than `limit`. The error has a
/// message, and a hint if there is one.
pub(crate) fn read_text(
    path: &Path,
    limit: u64,
    doubt: &str,
) -> Result<String, (String, Option<String>)> {
    let cannot = |error: std::io::Error| {
        let hint = format!(
            "looked for {}: paths are relative to the file that names them",
            path.display()
        );
        (error.to_string(), Some(hint))
    };
    // Opening a pipe would block until its other end opens.
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(("it is not a regular file".into(), None));
    }
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(cannot)?;
    String::from_utf8(bytes).map_err(|_| ("not UTF-8 text".into(), Some(doubt.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{load_str, Overrides};

    #[test]
    fn a_file_may_lie_elsewhere() {
        let text =
            "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"main\"\nworkload = \"trace\"\n\
                    path = \"there/t.ptt\"\n";
        let here =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/traces/cc1-zpipe.ptt");
        let named = PathBuf::from("/no/such/there/t.ptt");
        let base = Path::new("/no/such");
        assert!(load_str("s", text, base, &Overrides::default()).is_err());
        let files = NamedFiles::elsewhere(BTreeMap::from([(named.clone(), here.clone())]));
        let overrides = Overrides { files, ..Overrides::default() };
        let scenario = load_str("s", text, base, &overrides).unwrap();
        let workload = &scenario.variants[0].setup.tasks[0].phases[0].workload;
        assert_eq!(workload.trace(), Some(&here));
        assert_eq!(overrides.files.named(), BTreeSet::from([named]));
    }
}
