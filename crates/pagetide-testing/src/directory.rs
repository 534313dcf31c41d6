//! A directory for the files of one test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

/// A directory for one test; removed if the test passes.
pub struct TestDir {
    pub directory: PathBuf,
}

impl TestDir {
    /// An empty directory below cargo's target folder.
    #[expect(clippy::new_without_default)] // it creates a directory
    pub fn new() -> TestDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = built_programs().with_file_name("tmp").join(name);
        fs::create_dir_all(&directory).unwrap();
        TestDir { directory }
    }

    /// A directory with one file.
    pub fn with(name: &str, content: impl AsRef<[u8]>) -> TestDir {
        let place = TestDir::new();
        place.write(name, content);
        place
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a file, and creates the directories above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Names of all files, hidden ones too, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// The directory of the built programs: the test programs are in its `deps`.
pub fn built_programs() -> PathBuf {
    env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}
