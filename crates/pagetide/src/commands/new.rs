//! `pagetide new`: prints a commented scenario to start from, sized for a machine.
//!
//! On a terminal, the command asks for values that the command line does not give. Elsewhere it
//! uses the values of a usual machine. Invariant: the printed scenario has no mistakes, whatever
//! the answers were.

use crate::cli::{NewArgs, ScenarioTemplate};
use crate::error::{CliError, ExitStatus};
use crate::output_file::OutputFile;
use crate::printer::Printer;
use clap::ValueEnum;
use pagetide_scenario::diagnostic::Diagnostic;
use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::PageSize;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

const MIB: u64 = 1 << 20;

/// The size of the machine, as text from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MachineSize {
    memory: String,
    swap: String,
    cpus: String,
}

impl ScenarioTemplate {
    /// The template, with placeholders: `<memory>`, `<swap>`, `<cpus>`, and `<40%>` of the memory.
    const fn text(self) -> &'static str {
        match self {
            ScenarioTemplate::K8sNode => include_str!("../templates/k8s-node.toml"),
            ScenarioTemplate::Database => include_str!("../templates/database.toml"),
            ScenarioTemplate::Desktop => include_str!("../templates/desktop.toml"),
            ScenarioTemplate::BuildServer => include_str!("../templates/build-server.toml"),
        }
    }

    /// Usual memory, swap and CPUs of such a machine.
    const fn usual(self) -> (&'static str, &'static str, &'static str) {
        match self {
            ScenarioTemplate::K8sNode | ScenarioTemplate::Desktop => ("8GiB", "4GiB", "4"),
            ScenarioTemplate::Database => ("8GiB", "2GiB", "8"),
            ScenarioTemplate::BuildServer => ("8GiB", "8GiB", "8"),
        }
    }
}

pub fn new(args: &NewArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let output = args.output.as_deref().map(OutputFile::new_file).transpose()?;
    let stdin = std::io::stdin();
    let asks = stdin.is_terminal() && std::io::stderr().is_terminal();
    let text = if asks {
        make(args, Some((&mut stdin.lock(), &mut std::io::stderr())))?
    } else {
        make(args, None)?
    };
    match output {
        Some(output) => {
            output.write(text)?;
            printer.note(&format!("now: pagetide run {}", output.path().display()));
        }
        None => printer.data(text)?,
    }
    Ok(ExitStatus::Success)
}

/// The streams of a dialogue: answers in, questions out.
type Dialogue<'a> = (&'a mut dyn BufRead, &'a mut dyn Write);

/// The scenario's text. Asks `person`, if there is one, for missing values.
fn make(args: &NewArgs, mut person: Option<Dialogue<'_>>) -> Result<String, CliError> {
    let names: Vec<String> = ScenarioTemplate::value_variants()
        .iter()
        .filter_map(|template| Some(template.to_possible_value()?.get_name().to_owned()))
        .collect();
    let template = match (args.from, &mut person) {
        (Some(template), _) => template,
        (None, Some(person)) => loop {
            let answer =
                ask(person, &format!("What is it? One of {}", names.join(", ")), &names[0])?;
            match ScenarioTemplate::from_str(&answer, true) {
                Ok(template) => break template,
                Err(_) => say(person, "There is no such template.\n")?,
            }
        },
        (None, None) => {
            let hint = format!("pagetide new --from {}", names.join("|"));
            return Err(CliError::bad_input("choose a template", hint));
        }
    };
    let (memory, swap, cpus) = template.usual();
    // A named template means that no questions are wanted.
    let mut person = person.filter(|_| args.from.is_none());
    let mut value = |given: &Option<String>, question: &str, usual: &str| match (given, &mut person)
    {
        (Some(given), _) => Ok(given.clone()),
        (None, Some(person)) => ask(person, question, usual),
        (None, None) => Ok(usual.to_owned()),
    };
    let size = MachineSize {
        memory: value(&args.memory, "Memory", memory)?,
        swap: value(&args.swap, "Swap", swap)?,
        cpus: value(&args.cpus, "CPUs", cpus)?,
    };
    fill(template, &size)
}

/// The answer, or the default if the line is empty.
fn ask(
    (answers, questions): &mut Dialogue<'_>,
    question: &str,
    usual: &str,
) -> Result<String, CliError> {
    let failed = |error| CliError::Failure(format!("cannot ask: {error}"));
    write!(questions, "{question} [{usual}]: ").map_err(failed)?;
    questions.flush().map_err(failed)?;
    let mut line = String::new();
    if answers.read_line(&mut line).map_err(failed)? == 0 {
        return Err(CliError::Interrupted);
    }
    let answer = line.trim();
    Ok(if answer.is_empty() { usual } else { answer }.to_owned())
}

fn say((_, questions): &mut Dialogue<'_>, text: &str) -> Result<(), CliError> {
    write!(questions, "{text}").map_err(|error| CliError::Failure(format!("cannot ask: {error}")))
}

/// Fills in a template for a machine.
fn fill(template: ScenarioTemplate, size: &MachineSize) -> Result<String, CliError> {
    let memory = match Quantity::read(&size.memory, PageSize::default()) {
        Ok(Quantity::Bytes(bytes)) if bytes >= 256 * MIB => bytes,
        _ => {
            let message = format!("the memory `{}` is not a size of at least 256 MiB", size.memory);
            return Err(CliError::bad_input(message, "write it like 8GiB or 512MiB"));
        }
    };
    let mut filled = String::new();
    let swap = Quantity::read(&size.swap, PageSize::default());
    let has_swap = !matches!(swap, Ok(Quantity::Bytes(0) | Quantity::Integer(0)));
    let lines = template.text().split_inclusive('\n');
    let text: String = lines.filter(|line| has_swap || !line.starts_with("swap = ")).collect();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('<') {
        let (place, after_place) = after.split_once('>').unwrap_or((after, ""));
        filled.push_str(before);
        match place.trim_end_matches('%').parse::<u64>() {
            Ok(percent) => filled += &format!("{}MiB", memory / MIB * percent / 100),
            Err(_) => match place {
                "memory" => filled.push_str(&size.memory),
                "swap" => filled.push_str(&size.swap),
                "cpus" => filled.push_str(&size.cpus),
                other => unreachable!("a template has no placeholder `{other}`"),
            },
        }
        rest = after_place;
    }
    filled.push_str(rest);
    match load_str("new.toml", &filled, Path::new(""), &Overrides::default()) {
        Ok(_) => Ok(filled),
        Err(errors) => {
            let tell = |error: &Diagnostic| {
                format!("{}: {}", error.key.as_deref().unwrap_or(&error.text), error.message)
            };
            let told: Vec<String> = errors.iter().map(tell).collect();
            Err(CliError::bad_input(told.join("\n"), "try other sizes of the machine"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(from: Option<ScenarioTemplate>) -> NewArgs {
        NewArgs { from, memory: None, swap: None, cpus: None, output: None }
    }

    fn answered(answers: &str) -> (Result<String, CliError>, String) {
        let mut questions = Vec::new();
        let text = make(&args(None), Some((&mut answers.as_bytes(), &mut questions)));
        (text, String::from_utf8(questions).unwrap())
    }

    #[test]
    fn every_template_is_a_scenario_on_small_and_large_machines() {
        for &template in ScenarioTemplate::value_variants() {
            for memory in ["256MiB", "3GiB", "512GiB"] {
                let args = NewArgs { memory: Some(memory.into()), ..args(Some(template)) };
                let text =
                    make(&args, None).unwrap_or_else(|error| panic!("{template:?}: {error}"));
                assert!(text.contains(&format!("memory = \"{memory}\"")) && !text.contains("%>"));
                assert!(text.starts_with("# "), "it has comments");
            }
        }
    }

    #[test]
    fn a_machine_may_have_no_swap() {
        let size = MachineSize { memory: "4GiB".into(), swap: "0".into(), cpus: "2".into() };
        for &template in ScenarioTemplate::value_variants() {
            assert!(!fill(template, &size).unwrap().contains("\nswap ="), "{template:?}");
        }
    }

    #[test]
    fn questions_have_usual_answers_and_are_asked_again() {
        let (text, questions) = answered("nonsense\ndatabase\n16GiB\n\n6\n");
        let text = text.unwrap();
        assert!(text.contains("memory = \"16GiB\"") && text.contains("cpus = 6"), "{text}");
        assert!(text.contains("heap = \"8192MiB\""), "half of it");
        assert!(
            questions.contains("There is no such template") && questions.contains("Swap [2GiB]")
        );
        assert!(matches!(answered("database\n").0, Err(CliError::Interrupted)), "no more answers");
    }

    #[test]
    fn what_is_no_machine_is_refused() {
        for (memory, cpus, told) in
            [("8 apples", "2", "8 apples"), ("1MiB", "2", "at least 256"), ("4GiB", "x", "cpus")]
        {
            let size =
                MachineSize { memory: memory.into(), swap: "1GiB".into(), cpus: cpus.into() };
            let error = fill(ScenarioTemplate::Desktop, &size).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert!(make(&args(None), None)
            .unwrap_err()
            .to_string()
            .contains("--from k8s-node|database"));
    }
}
