//! Where the text of a scenario came from, and where its paths start.

use pagetide::shipped::{self, Traces};
use pagetide_scenario::diagnostic::Diagnostics;
use pagetide_scenario::load::{self, Overrides};
use pagetide_scenario::model::Scenario;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The text of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What messages call it; its stem is the scenario's name by default.
    pub name: String,
    pub text: String,
    /// Where its paths start.
    pub place: Place,
}

/// Where paths of a scenario start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Directory(PathBuf),
    /// At that of the shipped experiment of the name, whose traces the extension carries.
    Shipped(String),
}

impl Place {
    /// At a directory, whose name must be text: a scenario is handed to other processes as text.
    ///
    /// # Errors
    /// It is not.
    pub fn of(directory: PathBuf) -> Result<Place, Refused> {
        if directory.to_str().is_some() {
            return Ok(Place::Directory(directory));
        }
        let message = format!("the name of {} is not UTF-8", directory.display());
        Err(Refused::Outside(io::Error::new(io::ErrorKind::InvalidInput, message)))
    }
}

/// A scenario, and the shipped traces for as long as it is used.
#[derive(Debug)]
pub struct Loaded {
    pub scenario: Scenario,
    _traces: Option<Arc<Traces>>,
}

impl Loaded {
    /// The scenario; whoever takes it has its traces as long as another of them lives.
    pub fn into_scenario(self) -> Scenario {
        self.scenario
    }
}

/// Why there is no scenario.
#[derive(Debug)]
pub enum Refused {
    Mistakes(Diagnostics),
    /// The shipped traces cannot be written to disk.
    Outside(io::Error),
}

impl Source {
    /// That of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_file(path: &Path) -> Result<Source, Refused> {
        let name = path.display().to_string();
        let text = std::fs::metadata(path)
            .ok()
            .filter(|it| it.is_file() && it.len() <= load::SCENARIO_BYTES_MAX)
            .and_then(|_| std::fs::read_to_string(path).ok());
        let text = match text {
            Some(text) => text,
            // The loader says what is wrong.
            None => match load::load(path, &Overrides::default()) {
                Err(mistakes) => return Err(Refused::Mistakes(mistakes)),
                Ok(_) => std::fs::read_to_string(path).map_err(Refused::Outside)?,
            },
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        let directory = std::path::absolute(if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        });
        let place = Place::of(directory.map_err(Refused::Outside)?)?;
        Ok(Source { name, text, place })
    }

    /// That of the shipped experiment called `name`.
    pub fn of_shipped(name: &'static str) -> Source {
        Source {
            name: format!("experiments/{name}.toml"),
            text: shipped::text(name).to_owned(),
            place: Place::Shipped(name.to_owned()),
        }
    }

    /// The scenario with these changes.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn load(&self, overrides: &Overrides) -> Result<Loaded, Refused> {
        let (directory, traces) = match &self.place {
            Place::Directory(directory) => (directory.clone(), None),
            Place::Shipped(name) => {
                let traces = shipped_traces().map_err(Refused::Outside)?;
                (traces.directory_of(name), Some(traces))
            }
        };
        let scenario = load::load_str(&self.name, &self.text, &directory, overrides);
        let scenario = scenario.map_err(Refused::Mistakes)?;
        Ok(Loaded { scenario, _traces: traces })
    }
}

/// The shipped traces on disk, once for all scenarios of this process that use them at the same time.
fn shipped_traces() -> io::Result<Arc<Traces>> {
    static THERE: Mutex<(u32, Weak<Traces>)> = Mutex::new((0, Weak::new()));
    let mut there = THERE.lock().unwrap_or_else(PoisonError::into_inner);
    // Those of a process that this one was forked from may go away.
    let this = std::process::id();
    if let Some(traces) = there.1.upgrade().filter(|_| there.0 == this) {
        return Ok(traces);
    }
    let traces = Arc::new(Traces::unpack()?);
    *there = (this, Arc::downgrade(&traces));
    Ok(traces)
}
