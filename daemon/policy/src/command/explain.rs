use std::path::{Path, PathBuf};

use super::judge::{Found, IN_TRUSTED, Rights, Subject, forbidden, layers};
use super::operands::operands;
use crate::path::{Links, NoLinks};
use crate::{CommandForm, Explained};

/// What `owctl explain command` asks with.
#[derive(Clone, Debug, Default)]
pub struct Question {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub safe: bool,
    /// Where the command would run; also the only root. Absolute; empty stands for `/nowhere`.
    pub cwd: PathBuf,
    pub home: PathBuf,
    pub trusted: Vec<PathBuf>,
    pub protected: Vec<PathBuf>,
}

/// What owd would say to a command line, by its text alone.
#[must_use]
pub fn explain(line: &str, question: &Question) -> Explained {
    explain_with(line, question, &NoLinks)
}

/// As [`explain`], following the links that `links` knows. The same layers as [`judge`](crate::judge).
#[must_use]
pub fn explain_with(line: &str, question: &Question, links: &dyn Links) -> Explained {
    let cwd = if question.cwd.is_absolute() { question.cwd.as_path() } else { Path::new("/nowhere") };
    let home = if question.home.is_absolute() { question.home.as_path() } else { Path::new("/nowhere/home") };
    let form = CommandForm::Line(line.to_owned());
    let found = operands(&form, cwd, home, links);
    let roots = [cwd.to_owned()];
    let rights = Rights {
        allow: &question.allow,
        deny: &question.deny,
        safe: question.safe,
        roots: &roots,
        run_folder: None,
        protected: &question.protected,
        trusted: &question.trusted,
        home,
    };
    let subject = Subject { form: &form, cwd, env_names: &[], operands: &found, program: None, parts: &[] };
    let (verdict, rule, why) = match forbidden(subject, &rights) {
        Some((rule, why)) => ("deny", rule, why),
        None => match layers(subject, &rights) {
            Found::Safe { rule } if rule.ends_with(IN_TRUSTED) => {
                ("allow", rule, "you trust what is built there".into())
            }
            Found::Safe { rule } => ("allow", rule, "it only reads, and only inside the roots".into()),
            Found::Allowed { rule } => ("allow", rule, "configured entries cover every part of it".into()),
            Found::Dynamic { why } => ("ask", "ask: shell syntax".into(), why),
            Found::Nothing { why } => ("ask", "ask: exec".into(), why),
        },
    };
    Explained { verdict: verdict.into(), rule, why }
}
