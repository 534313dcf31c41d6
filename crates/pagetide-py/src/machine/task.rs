//! `pagetide.core.Task` and `Mapping`: an address space, its mappings, and page touches.

use super::state::{MachineError, SharedMachine};
use super::{bytes, room, ENTRY};
use crate::buffer::Buffer;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::{MmId, ProcessCall, TouchResult};
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{FileId, NodeId, VmaId};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// Touches between two checks for signals.
const BATCH: usize = 1 << 18;

/// An address space. `map` creates mappings in it.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Task {
    state: SharedMachine,
    mm: MmId,
    /// A unique number; the manager reuses its ids.
    number: u64,
}

impl Task {
    pub fn new(state: SharedMachine, (mm, number): (MmId, u64)) -> Task {
        Task { state, mm, number }
    }
}

#[pymethods]
impl Task {
    /// Maps `size` bytes (or `"64MiB"`) of anonymous memory, or of a file.
    ///
    /// `file`: the number from `create_file`. Tasks that map the same file share its pages.
    /// `random`: disable read-ahead.
    #[pyo3(signature = (size, *, file = None, random = false))]
    fn map(
        &self,
        py: Python<'_>,
        size: &Bound<'_, PyAny>,
        file: Option<u32>,
        random: bool,
    ) -> PyResult<Mapping> {
        let size = bytes(size, "size")?;
        room(py, (size / 4096).saturating_mul(ENTRY))?;
        let backing = file.map_or(Backing::Anon, |file| Backing::File(FileId(file)));
        let advice = if random { Advice::Random } else { Advice::Normal };
        let (mm, number) = (self.mm, self.number);
        let (vma, pages) = self.state.ask(py, |state| {
            let pages = size.div_ceil(PageSize::default().bytes());
            if state.is_over(mm, number) {
                return Err(MachineError::Input(
                    "the task has ended".into(),
                    "create another task".into(),
                ));
            }
            if let Backing::File(file) = backing {
                let there = state.executor.manager.nr_pages_of_file(file).unwrap_or(0);
                if pages > there {
                    let message = format!("the file has {there} pages, not {pages}");
                    return Err(MachineError::Input(
                        message,
                        "create a larger file with create_file".into(),
                    ));
                }
            }
            let made = state.executor.ask(|it, _| it.mmap(mm, backing, pages, advice, false));
            let refused =
                |error| MachineError::Input(format!("cannot map: {error}"), "map less".into());
            Ok((made.map_err(refused)?, pages))
        })?;
        Ok(Mapping { state: self.state.clone(), mm, number, vma, pages })
    }

    /// Whether the task has ended, by `exit` or by the OOM killer.
    #[getter]
    fn is_over(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| state.is_over(self.mm, self.number))
    }

    /// Ends the task and frees the memory that only it used.
    fn exit(&self, py: Python<'_>) {
        self.state.with(py, |state| state.end(self.mm, self.number));
    }
}

/// A range of pages of a task.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Mapping {
    state: SharedMachine,
    mm: MmId,
    number: u64,
    vma: VmaId,
    pages: u64,
}

#[pymethods]
impl Mapping {
    /// Touches pages in sequence. Returns (hits, minor faults, major faults).
    ///
    /// `pages`: one number, or a buffer of integers (`array('Q', ...)`, numpy's uint64 or uint32),
    /// which is not copied. The sum of the counts is smaller than the number of pages if the task
    /// was killed; then `Task.is_over` is true.
    ///
    /// Raises `IndexError` for a page outside the mapping (pages before it are touched),
    /// `TypeError` for another type of buffer.
    #[pyo3(signature = (pages, *, write = false))]
    fn touch(
        &self,
        py: Python<'_>,
        pages: &Bound<'_, PyAny>,
        write: bool,
    ) -> PyResult<(u64, u64, u64)> {
        let mut counts = [0; 3];
        if pages.is_instance_of::<PyInt>() {
            let page: u64 = pages
                .extract()
                .map_err(|_| PyIndexError::new_err(format!("the mapping has no page {pages}")))?;
            self.touch_all(py, 1, |_| page, write, &mut counts)?;
        } else {
            let buffer = Buffer::of(pages)?;
            let mut done = 0;
            while done < buffer.len() {
                let nr = (buffer.len() - done).min(BATCH);
                let goes_on =
                    self.touch_all(py, nr, |at| buffer.at(done + at), write, &mut counts)?;
                py.check_signals()?;
                if !goes_on {
                    break;
                }
                done += nr;
            }
        }
        let [hits, minor, major] = counts;
        Ok((hits, minor, major))
    }

    /// Number of its pages in memory.
    #[getter]
    fn resident(&self, py: Python<'_>) -> u64 {
        self.state.with(py, |state| {
            if state.is_over(self.mm, self.number) {
                return 0;
            }
            let manager = &state.executor.manager;
            (0..self.pages).filter(|page| manager.is_resident(self.vma, *page)).count() as u64
        })
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.pages).unwrap_or(usize::MAX)
    }
}

impl Mapping {
    /// Returns whether the task still exists.
    fn touch_all(
        &self,
        py: Python<'_>,
        nr: usize,
        page_at: impl Fn(usize) -> u64 + Send + Sync,
        write: bool,
        counts: &mut [u64; 3],
    ) -> PyResult<bool> {
        let wrong = self.state.with(py, |state| {
            if state.is_over(self.mm, self.number) {
                return Ok(false);
            }
            for at in 0..nr {
                let page = page_at(at);
                if page >= self.pages {
                    return Err(page);
                }
                match state.executor.manager.touch(self.vma, page, write) {
                    TouchResult::Hit => counts[0] += 1,
                    TouchResult::Fault => {
                        let mut call =
                            ProcessCall::fault(self.mm, NodeId(0), self.vma, page, write);
                        match state.run(&mut call) {
                            Outcome::Got(got) => counts[1 + usize::from(got.major)] += 1,
                            _ => return Ok(false),
                        }
                    }
                }
            }
            Ok(true)
        });
        wrong.map_err(|page| {
            PyIndexError::new_err(format!(
                "the mapping has {} pages, so no page {page}",
                self.pages
            ))
        })
    }
}
