//! `jari event check`: every mistake of a definition.

use std::fs;
use std::path::{Path, PathBuf};

use admin::Mistake;
use anyhow::Context;
use domain::layout::Edition;
use domain::sale::{Sale, check};
use serde::Serialize;

use crate::Ending;
use crate::output::{Output, counted};

/// What checking a file came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked<'a> {
    file: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    problems: Vec<Mistake>,
}

/// Checks files; mistakes are told in the files' order.
pub(crate) fn run(files: &[PathBuf], json: bool, output: &mut Output) -> anyhow::Result<Ending> {
    let mut reports = Vec::new();
    let mut mistakes = 0;
    for file in files {
        let text = read(file)?;
        let (event, problems) = match check(&text) {
            Ok(sale) => {
                if !json {
                    output.line(fine(file, sale.clone()))?;
                }
                (Some(sale.event_id.to_string()), Vec::new())
            }
            Err(problems) => (None, problems.into_iter().map(Mistake::from).collect()),
        };
        if !json {
            tell(file, &problems, output)?;
        }
        mistakes += problems.len();
        reports.push(Checked { file, event, problems });
    }
    if json {
        output.json(&reports)?;
    } else if mistakes > 0 {
        output.line(counted(mistakes as u64, "mistake"))?;
    }
    Ok(if mistakes == 0 { Ending::Fine } else { Ending::Found })
}

pub(crate) fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Each mistake as editors and compilers tell them: `FILE:LINE: $.path: reason`.
pub(crate) fn tell(file: &Path, problems: &[Mistake], output: &mut Output) -> anyhow::Result<()> {
    for problem in problems {
        output.line(mistake(file, problem))?;
    }
    Ok(())
}

fn mistake(file: &Path, Mistake { path, line, reason }: &Mistake) -> String {
    let line = line.map_or_else(String::new, |line| format!("{line}:"));
    format!("{}:{line} {path}: {reason}", file.display())
}

fn fine(file: &Path, sale: Sale) -> String {
    let event = sale.event_id.clone();
    let offerings = sale.offerings.len() as u64;
    let (edition, _) = Edition::first(sale);
    let layout = &edition.layout;
    format!(
        "{}: {event}, no mistakes: {}, {}, {}",
        file.display(),
        counted(offerings, "offering"),
        counted(layout.sections.len() as u64, "section"),
        counted(layout.capacity(), "place")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_names_file_and_line() {
        let at = |line| Mistake { path: "$.title".to_owned(), line, reason: "is missing".to_owned() };
        let file = Path::new("a/b.json");
        assert_eq!(mistake(file, &at(Some(3))), "a/b.json:3: $.title: is missing");
        assert_eq!(mistake(file, &at(None)), "a/b.json: $.title: is missing");
    }

    #[test]
    fn a_sale_without_mistakes_is_told_in_a_line() {
        let text = include_str!("../../../infra/sales/concert-2026.json");
        let line = fine(Path::new("c.json"), check(text).unwrap());
        assert!(line.starts_with("c.json: concert-2026, no mistakes: 2 offerings, 6 sections, "), "{line}");
    }
}
