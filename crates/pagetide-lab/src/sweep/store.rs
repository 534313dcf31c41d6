//! The store of a sweep: a directory with one row per finished run.
//!
//! A row is a line of JSON: digest of the scenario, version, variant, knobs, seed, metrics. A
//! process appends to one file of the directory (`runs.jsonl`, or `shard-K-of-N.jsonl`), one write
//! per row, and reads all files. A complete sweep sorts its file.
//!
//! Invariant: after a kill at any time the directory is readable and has all rows but the one that
//! was being written: an incomplete last line is dropped. Equal rows are equal bytes on every
//! machine. A file has one writer, which holds its lock.

use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::PageSize;
use pagetide_scenario::record::RunRecord;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepRow {
    /// Digest of the scenario ([`super::grid::digest`]).
    pub scenario_digest: String,
    /// The settings of the point.
    pub knobs: BTreeMap<String, String>,
    #[serde(flatten)]
    pub record: RunRecord,
}

/// Key of a row. Order: variant, knobs (numbers by size), seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepKey {
    pub variant: String,
    pub knobs: BTreeMap<String, String>,
    pub seed: u64,
}

impl Ord for SweepKey {
    fn cmp(&self, other: &SweepKey) -> Ordering {
        let names = || self.knobs.keys().cmp(other.knobs.keys());
        let values = || {
            let pairs = self.knobs.values().zip(other.knobs.values());
            pairs.map(|(a, b)| by_size(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let variant = self.variant.cmp(&other.variant);
        variant.then_with(names).then_with(values).then_with(|| self.seed.cmp(&other.seed))
    }
}

impl PartialOrd for SweepKey {
    fn partial_cmp(&self, other: &SweepKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Numbers before words, by size; equal numbers by their text.
fn by_size(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let number = |text: &str| match Quantity::read(text, PageSize::Kib4) {
        Ok(Quantity::Integer(integer)) => Some(integer as f64),
        Ok(Quantity::Decimal(number) | Quantity::Percent(number)) => Some(number),
        Ok(
            Quantity::Bytes(number)
            | Quantity::Nanoseconds(number)
            | Quantity::BytesPerSecond(number),
        ) => Some(number as f64),
        Err(_) => None,
    };
    let order = match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    order.then_with(|| a.cmp(b))
}

impl SweepRow {
    pub fn key(&self) -> SweepKey {
        SweepKey {
            variant: self.record.variant.clone(),
            knobs: self.knobs.clone(),
            seed: self.record.seed,
        }
    }

    fn line(&self) -> String {
        serde_json::to_string(self).expect("a record always serialises") + "\n"
    }
}

/// Scenario and version of the rows of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOrigin {
    pub scenario: String,
    pub digest: String,
    pub version: String,
}

impl StoreOrigin {
    fn of(row: &SweepRow) -> StoreOrigin {
        StoreOrigin {
            scenario: row.record.scenario.clone(),
            digest: row.scenario_digest.clone(),
            version: row.record.version.clone(),
        }
    }

    /// Why rows of both cannot be in one store.
    fn differs(&self, other: &StoreOrigin) -> Option<String> {
        if self.version != other.version {
            Some(format!("of version {}, not {}", other.version, self.version))
        } else if self.scenario != other.scenario {
            Some(format!("of the scenario {}, not {}", other.scenario, self.scenario))
        } else if self.digest != other.digest {
            let (a, b) = (&other.digest, &self.digest);
            Some(format!("of {} before it was changed (digest {a}, now {b})", self.scenario))
        } else {
            None
        }
    }
}

/// The rows of a sweep, in a directory or only in memory.
#[derive(Debug)]
pub struct SweepStore {
    origin: Option<StoreOrigin>,
    rows: BTreeMap<SweepKey, SweepRow>,
    /// Keys in the file of this process.
    own: Vec<SweepKey>,
    file: Option<OwnFile>,
}

/// The locked file of this process.
#[derive(Debug)]
struct OwnFile {
    path: PathBuf,
    file: File,
    /// Bytes of complete lines.
    length: u64,
    /// A write failed. Further rows would follow half a line, so none is written.
    is_broken: bool,
    /// The process that has the lock.
    process: u32,
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Closing is not enough: a child of this process may have the file open, too. Such a child
        // closes the file, and must not release the lock of its parent.
        if self.process == std::process::id() {
            let _ = self.file.unlock();
        }
    }
}

impl SweepStore {
    fn empty(origin: Option<StoreOrigin>) -> SweepStore {
        SweepStore { origin, rows: BTreeMap::new(), own: Vec::new(), file: None }
    }

    pub fn in_memory(origin: StoreOrigin) -> SweepStore {
        SweepStore::empty(Some(origin))
    }

    /// Opens or creates the store in a directory; `file` is the file of this process.
    /// Fails if the directory is not a store, has rows of another scenario or version, or another
    /// process has locked the file.
    pub fn open(directory: &Path, file: &str, origin: StoreOrigin) -> Result<SweepStore, Mistake> {
        let mut store = SweepStore::empty(Some(origin));
        store.claim(directory, file)?;
        Ok(store)
    }

    /// Merges several stores, and the store `into`, which is created if needed and can then be
    /// saved ([`SweepStore::save`]).
    /// Fails if the stores differ in scenario or version, or another process has locked the file.
    pub fn merged(directories: &[PathBuf], into: Option<&Path>) -> Result<SweepStore, Mistake> {
        let mut store = SweepStore::empty(None);
        for directory in directories {
            store.read(directory, None)?;
        }
        if store.rows.is_empty() {
            return Err(Mistake::new(
                "the stores have no rows",
                "give the directories that `pagetide sweep --store DIR` filled",
            ));
        }
        if let Some(directory) = into {
            store.claim(directory, FILE)?;
        }
        Ok(store)
    }

    /// Locks the file of this process, and adds the rows of the directory.
    fn claim(&mut self, directory: &Path, name: &str) -> Result<(), Mistake> {
        let cannot = |error: io::Error| {
            Mistake::new(
                format!("cannot keep rows in {}: {error}", directory.display()),
                "give a directory that may be written, or a new name in one",
            )
        };
        fs::create_dir_all(directory).map_err(cannot)?;
        let path = directory.join(name);
        let file = lock(&path).map_err(cannot)?.ok_or_else(|| {
            Mistake::new(
                format!("another process writes to {}", path.display()),
                "wait for it, name another directory, or share the runs with --shard K/N",
            )
        })?;
        let read = self.read(directory, Some(name));
        let length = file.metadata().map_err(cannot)?.len();
        if read.is_err() && length == 0 {
            // Do not leave the new file behind.
            let _ = fs::remove_file(&path);
        }
        read?;
        let process = std::process::id();
        self.file = Some(OwnFile { path, file, length, is_broken: false, process });
        Ok(())
    }

    /// `None` without rows.
    pub fn origin(&self) -> Option<&StoreOrigin> {
        self.origin.as_ref()
    }

    pub fn row(&self, key: &SweepKey) -> Option<&SweepRow> {
        self.rows.get(key)
    }

    /// Whether the run has a row.
    pub fn has(&self, key: &SweepKey) -> bool {
        self.rows.contains_key(key)
    }

    /// All rows, ordered by key.
    pub fn rows(&self) -> impl Iterator<Item = &SweepRow> {
        self.rows.values()
    }

    /// Appends a row with one write.
    /// After the first error nothing more is written.
    pub fn append(&mut self, row: SweepRow) -> io::Result<()> {
        if let Some(own) = &mut self.file {
            own.append(row.line().as_bytes())?;
        }
        self.own.push(row.key());
        self.rows.insert(row.key(), row);
        Ok(())
    }

    /// Closes the file of this process. Further rows are only in memory.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// Sorts the file of this process and closes it.
    /// After an error the file is unchanged.
    pub fn finish(&mut self) -> io::Result<()> {
        let Some(own) = self.file.take() else { return Ok(()) };
        if self.own.is_sorted_by(|a, b| a < b) {
            return Ok(());
        }
        self.own.sort();
        self.own.dedup();
        write_whole(&own.path, self.own.iter().filter_map(|key| self.rows.get(key)))
    }

    /// Writes all rows into the file of this process, like one run of the whole sweep.
    /// After an error the file is unchanged.
    pub fn save(&mut self) -> io::Result<()> {
        let Some(own) = self.file.take() else { return Ok(()) };
        write_whole(&own.path, self.rows.values())
    }

    fn read(&mut self, directory: &Path, own: Option<&str>) -> Result<(), Mistake> {
        let cannot = |path: &Path, error: io::Error| {
            Mistake::new(
                format!("cannot read {}: {error}", path.display()),
                "give a directory that `pagetide sweep --store` filled",
            )
        };
        let entries = fs::read_dir(directory).map_err(|error| cannot(directory, error))?;
        let paths: io::Result<Vec<PathBuf>> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths.map_err(|error| cannot(directory, error))?;
        paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        paths.sort();
        for path in paths {
            let is_own = own.is_some_and(|own| path.file_name().is_some_and(|name| name == own));
            let text = fs::read(&path).map_err(|error| cannot(&path, error))?;
            // A killed process may leave an incomplete last row.
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if is_own && whole < text.len() {
                let cut = OpenOptions::new().write(true).open(&path);
                cut.and_then(|file| file.set_len(whole as u64))
                    .map_err(|error| cannot(&path, error))?;
            }
            let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            for (at, line) in lines.enumerate() {
                self.add_line(line, is_own).map_err(|why| {
                    Mistake::new(
                        format!("{}, line {}: {why}", path.display(), at + 1),
                        "a store has rows of one scenario and version; name another directory",
                    )
                })?;
            }
        }
        Ok(())
    }

    fn add_line(&mut self, line: &[u8], is_own: bool) -> Result<(), String> {
        let row: SweepRow =
            serde_json::from_slice(line).map_err(|error| format!("not a row: {error}"))?;
        let origin = StoreOrigin::of(&row);
        match &self.origin {
            None => self.origin = Some(origin),
            Some(known) => {
                if let Some(why) = known.differs(&origin) {
                    return Err(format!("this row is {why}"));
                }
            }
        }
        let key = row.key();
        if is_own {
            self.own.push(key.clone());
        }
        if let Some(known) = self.rows.get(&key) {
            if known.line() != row.line() {
                return Err("two rows of the same run differ".to_owned());
            }
            return Ok(());
        }
        self.rows.insert(key, row);
        Ok(())
    }
}

/// The file of a sweep that is not a shard.
pub const FILE: &str = "runs.jsonl";

impl OwnFile {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("an earlier row could not be written"));
        }
        let written = self.file.write_all(line);
        match written {
            Ok(()) => self.length += line.len() as u64,
            Err(_) => {
                self.is_broken = true;
                // If half a line remains, the next process drops it.
                let _ = self.file.set_len(self.length);
            }
        }
        written
    }
}

/// Opens or creates a file and locks it; `None` if another process has the lock. Without a lock if
/// the file system has none.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                return Ok(Some(file));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The previous owner of the lock may have replaced the file.
        let (ours, there) = (file.metadata()?, fs::metadata(path));
        match there {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                return Ok(Some(file));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Replaces a file by these rows, atomically.
fn write_whole<'a>(path: &Path, rows: impl Iterator<Item = &'a SweepRow>) -> io::Result<()> {
    let temporary = path.with_extension(format!("tmp-{}", std::process::id()));
    let write = || {
        let mut file = io::BufWriter::new(File::create(&temporary)?);
        for row in rows {
            file.write_all(row.line().as_bytes())?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
