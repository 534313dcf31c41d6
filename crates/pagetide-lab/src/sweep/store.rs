//! A directory with a row for every run that was made.
//!
//! A row is a line of JSON: the digest of the scenario, the version, the variant, each knob, the seed, each metric.
//! A process appends to one file of the directory (`runs.jsonl`, a shard `shard-K-of-N.jsonl`), each row by one
//! write, and reads all of them. When a sweep is complete its file is put in order.
//!
//! Invariant: whenever the process is killed, the directory can be read and has all rows but the one that was being
//! written: a last line without an end is dropped. Rows of one order are the same bytes, whoever wrote them. A file
//! has one writer, who holds its lock.

use pagetide_scenario::criterion::Mistake;
use pagetide_scenario::model::PageSize;
use pagetide_scenario::quantity::Quantity;
use pagetide_scenario::record::RunRecord;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A run that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Digest of the scenario ([`super::grid::digest`]).
    pub scenario_digest: String,
    /// What was set.
    pub knobs: BTreeMap<String, String>,
    /// What came out.
    #[serde(flatten)]
    pub record: RunRecord,
}

/// What tells rows of a sweep apart, in the order of the file: by variant, knobs (numbers by their size) and seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub variant: String,
    /// What was set.
    pub knobs: BTreeMap<String, String>,
    pub seed: u64,
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        let names = || self.knobs.keys().cmp(other.knobs.keys());
        let values = || {
            let pairs = self.knobs.values().zip(other.knobs.values());
            pairs.map(|(a, b)| by_size(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let variant = self.variant.cmp(&other.variant);
        variant.then_with(names).then_with(values).then_with(|| self.seed.cmp(&other.seed))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Numbers before words, by size; equal ones by their text.
fn by_size(a: &str, b: &str) -> Ordering {
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

impl Row {
    pub fn key(&self) -> Key {
        Key {
            variant: self.record.variant.clone(),
            knobs: self.knobs.clone(),
            seed: self.record.seed,
        }
    }

    fn line(&self) -> String {
        serde_json::to_string(self).expect("a record always serialises") + "\n"
    }
}

/// Of whom the rows of a store are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The scenario's name.
    pub scenario: String,
    pub digest: String,
    /// The version that ran it.
    pub version: String,
}

impl Origin {
    fn of(row: &Row) -> Origin {
        Origin {
            scenario: row.record.scenario.clone(),
            digest: row.scenario_digest.clone(),
            version: row.record.version.clone(),
        }
    }

    /// Why rows of both cannot be in one store, if they cannot.
    fn differs(&self, other: &Origin) -> Option<String> {
        if self.version != other.version {
            Some(format!("of version {}, not {}", other.version, self.version))
        } else if self.scenario != other.scenario {
            Some(format!("of the scenario {}, not {}", other.scenario, self.scenario))
        } else if self.digest != other.digest {
            let (a, b) = (&other.digest, &self.digest);
            Some(format!("of {} as it was ({a}) before it was changed ({b})", self.scenario))
        } else {
            None
        }
    }
}

/// The rows of a sweep, kept in a directory or only in memory.
#[derive(Debug)]
pub struct Store {
    origin: Option<Origin>,
    rows: BTreeMap<Key, Row>,
    /// Keys in the file of this process.
    own: Vec<Key>,
    file: Option<Own>,
}

/// The file of this process, which it has locked.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    file: File,
    /// Of its whole lines.
    length: u64,
    /// A write failed: nothing more is written, for it would stand behind half a line.
    is_broken: bool,
}

impl Store {
    fn empty(origin: Option<Origin>) -> Store {
        Store { origin, rows: BTreeMap::new(), own: Vec::new(), file: None }
    }

    pub fn in_memory(origin: Origin) -> Store {
        Store::empty(Some(origin))
    }

    /// The store in a directory, which is made if it is not there; `file` is the name of this process's file.
    ///
    /// # Errors
    /// It cannot be read or written, is no store, has rows of another scenario or version, or another process has
    /// the file.
    pub fn open(directory: &Path, file: &str, origin: Origin) -> Result<Store, Mistake> {
        let mut store = Store::empty(Some(origin));
        store.claim(directory, file)?;
        Ok(store)
    }

    /// What several stores have together, and with them the store `into`, which is made if it is not there: it can be
    /// saved there ([`Store::save`]).
    ///
    /// # Errors
    /// One of them cannot be read, they are not of one scenario and version, or another process has the file.
    pub fn merged(directories: &[PathBuf], into: Option<&Path>) -> Result<Store, Mistake> {
        let mut store = Store::empty(None);
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

    /// Makes the file of this process its own, and adds the rows of the directory.
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
            // What was made only now is not left behind.
            let _ = fs::remove_file(&path);
        }
        read?;
        self.file = Some(Own { path, file, length, is_broken: false });
        Ok(())
    }

    /// Of whom the rows are; `None` while there are none.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Whether the run was made.
    pub fn has(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }

    /// All rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// Adds a row, by one write.
    ///
    /// # Errors
    /// The file cannot be written, or could not be before: after the first error nothing is written.
    pub fn append(&mut self, row: Row) -> io::Result<()> {
        if let Some(own) = &mut self.file {
            own.append(row.line().as_bytes())?;
        }
        self.own.push(row.key());
        self.rows.insert(row.key(), row);
        Ok(())
    }

    /// Puts the file of this process in order.
    ///
    /// # Errors
    /// It cannot be written; then it is as it was.
    pub fn finish(&mut self) -> io::Result<()> {
        let Some(own) = self.file.take() else { return Ok(()) };
        self.own.sort();
        write_whole(&own.path, self.own.iter().filter_map(|key| self.rows.get(key)))
    }

    /// Writes all rows into the file of this process, as one run of the whole sweep does.
    ///
    /// # Errors
    /// It cannot be written; then it is as it was.
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
            // A row that was being written when its process was killed has no end.
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if is_own && whole < text.len() {
                let cut = OpenOptions::new().write(true).open(&path);
                cut.and_then(|file| file.set_len(whole as u64))
                    .map_err(|error| cannot(&path, error))?;
            }
            let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            for (at, line) in lines.enumerate() {
                self.take(line, is_own).map_err(|why| {
                    Mistake::new(
                        format!("{}, line {}: {why}", path.display(), at + 1),
                        "rows of one store are of one scenario and version; name another directory",
                    )
                })?;
            }
        }
        Ok(())
    }

    fn take(&mut self, line: &[u8], is_own: bool) -> Result<(), String> {
        let row: Row =
            serde_json::from_slice(line).map_err(|error| format!("this is no row: {error}"))?;
        let origin = Origin::of(&row);
        match &self.origin {
            None => self.origin = Some(origin),
            Some(known) => {
                if let Some(why) = known.differs(&origin) {
                    return Err(format!("this row is {why}"));
                }
            }
        }
        let key = row.key();
        if let Some(known) = self.rows.get(&key) {
            if known.line() != row.line() {
                return Err("two rows of the same run differ".to_owned());
            }
            return Ok(());
        }
        if is_own {
            self.own.push(key.clone());
        }
        self.rows.insert(key, row);
        Ok(())
    }
}

/// The file of a sweep that is not a shard.
pub const FILE: &str = "runs.jsonl";

impl Own {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("a row could not be written before"));
        }
        let written = self.file.write_all(line);
        match written {
            Ok(()) => self.length += line.len() as u64,
            Err(_) => {
                self.is_broken = true;
                // Half a line may be there; where it stays, the next process drops it.
                let _ = self.file.set_len(self.length);
            }
        }
        written
    }
}

/// Opens a file, makes it if it is not there, and locks it: `None` if another process has the lock. Where the file
/// system has no locks, the file is opened without.
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
        // The one who had the lock may have put another file in this place.
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

/// Replaces a file by these rows: all of them or none.
fn write_whole<'a>(path: &Path, rows: impl Iterator<Item = &'a Row>) -> io::Result<()> {
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
