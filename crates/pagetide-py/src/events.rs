//! The events of a run as a table (docs/outputs.md): one row for each event, one column for each
//! field that any event has.

use crate::table::Table;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray, UInt64Array};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::{EventValue, Observation, ObservationKind, Observer, RunCast};
use pyo3::prelude::*;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The values of a field, by event. Shorter than other columns if the last events lack the field.
enum EventColumn {
    Numbers(Vec<Option<u64>>),
    Signed(Vec<Option<i64>>),
    Flags(Vec<Option<bool>>),
    Words(Vec<Option<String>>),
}

#[derive(Default)]
struct EventRows {
    comms: Vec<String>,
    ns: Vec<u64>,
    cpu: Vec<u64>,
    comm: Vec<usize>,
    event: Vec<&'static str>,
    fields: Vec<(&'static str, EventColumn)>,
}

/// Collects the events of a run.
#[derive(Clone, Default)]
pub struct EventCollector(Arc<Mutex<EventRows>>);

impl EventCollector {
    pub fn table(&self) -> PyResult<Table> {
        let kept = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let rows = kept.ns.len();
        let comms: Vec<&str> = kept.comm.iter().map(|&at| kept.comms[at].as_str()).collect();
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("ns", Arc::new(UInt64Array::from(kept.ns))),
            ("cpu", Arc::new(UInt64Array::from(kept.cpu))),
            ("comm", Arc::new(StringArray::from(comms))),
            ("event", Arc::new(StringArray::from(kept.event))),
        ];
        for (name, column) in kept.fields {
            let array: ArrayRef = match column {
                EventColumn::Numbers(values) => Arc::new(UInt64Array::from(filled(values, rows))),
                EventColumn::Signed(values) => Arc::new(Int64Array::from(filled(values, rows))),
                EventColumn::Flags(values) => Arc::new(BooleanArray::from(filled(values, rows))),
                EventColumn::Words(values) => Arc::new(StringArray::from(filled(values, rows))),
            };
            columns.push((name, array));
        }
        Table::new(columns)
    }
}

fn filled<T: Clone>(mut values: Vec<Option<T>>, rows: usize) -> Vec<Option<T>> {
    values.resize(rows, None);
    values
}

/// Stores a value at the row of the current event.
fn put<T: Clone>(values: &mut Vec<Option<T>>, row: usize, value: Option<T>) {
    values.resize(row, None);
    values.push(value);
}

impl Observer for EventCollector {
    fn what(&self) -> &'static str {
        "the events"
    }

    fn begin(&mut self, cast: &RunCast) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.comms = cast.threads.iter().map(|thread| thread.comm.clone()).collect();
        Ok(())
    }

    fn observe(&mut self, observation: &Observation) -> io::Result<()> {
        let ObservationKind::Event(cpu, event) = &observation.what else { return Ok(()) };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        let row = kept.ns.len();
        kept.ns.push(observation.at);
        kept.cpu.push(cpu.0.into());
        kept.comm.push(observation.thread);
        kept.event.push(event.name());
        event.each_field(|name, value| {
            let found = kept.fields.iter().position(|(known, _)| *known == name);
            let at = found.unwrap_or_else(|| {
                let column = match value {
                    EventValue::Number(_) => EventColumn::Numbers(Vec::new()),
                    EventValue::Priority(_) => EventColumn::Signed(Vec::new()),
                    EventValue::Flag(_) => EventColumn::Flags(Vec::new()),
                    EventValue::Word(_) | EventValue::Gfp(_) | EventValue::Name(_) => {
                        EventColumn::Words(Vec::new())
                    }
                };
                kept.fields.push((name, column));
                kept.fields.len() - 1
            });
            let column = &mut kept.fields[at].1;
            match (column, value) {
                (EventColumn::Numbers(values), EventValue::Number(number)) => {
                    put(values, row, Some(number))
                }
                (EventColumn::Signed(values), EventValue::Priority(number)) => {
                    put(values, row, Some(number.into()));
                }
                (EventColumn::Flags(values), EventValue::Flag(flag)) => {
                    put(values, row, Some(flag))
                }
                (EventColumn::Words(values), EventValue::Word(word)) => {
                    put(values, row, Some(word.to_owned()));
                }
                (EventColumn::Words(values), EventValue::Gfp(gfp)) => {
                    put(values, row, Some(gfp.to_string()))
                }
                (EventColumn::Words(values), EventValue::Name(name)) => {
                    put(values, row, name.map(str::to_owned));
                }
                // A field has the same type in all events.
                _ => {}
            }
        });
        Ok(())
    }

    fn end(&mut self, _at: u64, _is_cut: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _record: Option<&RunRecord>) -> io::Result<()> {
        Ok(())
    }
}
