use std::fs;
use std::path::{Path, PathBuf};

use ow_protocol::{SaveTask, SavedTask};
use serde::Serialize;

use super::definition::Definition;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};

/// Import task files into owd's store
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl task import ~/owd-tasks            every *.toml of the folder
  owctl task import --replace reports.toml

A file that cannot be imported is reported and changes nothing; the others are imported all the same. The exit code is 1
then, and with --json `saved` and `failed` tell which they are.")]
pub(crate) struct Import {
    /// Task files, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Revise tasks that exist
    #[arg(long)]
    replace: bool,
}

#[derive(Serialize)]
struct Imported {
    saved: Vec<SavedTask>,
    failed: Vec<Refused>,
}

#[derive(Serialize)]
struct Refused {
    file: String,
    message: String,
    details: Vec<String>,
}

impl Import {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let files = self.files()?;
        let mut imported = Imported { saved: vec![], failed: vec![] };
        context.with_daemon(async |owd| {
            for file in files {
                // What cannot be read has nothing to ask owd for.
                let done = match request(&file, self.replace) {
                    Ok((name, request)) => owd.save_task(&name, &request).await.map_err(Failure::from),
                    Err(failure) => Err(Failure { exit: Exit::Usage, ..failure }),
                };
                match done {
                    Ok(saved) => imported.saved.push(saved),
                    Err(failure @ Failure { exit: Exit::Usage | Exit::Conflict, .. }) => {
                        imported.failed.push(Refused {
                            file: file.display().to_string(),
                            message: failure.message,
                            details: failure.details,
                        });
                    }
                    // Whatever else fails would fail for every other file, too.
                    Err(failure) => return Err(failure),
                }
            }
            Ok(())
        })?;
        if imported.failed.is_empty() {
            context.out.give(&imported, in_words);
            return Ok(());
        }
        if context.out.is_json() {
            context.out.json(&imported);
            return Err(Failure::told(Exit::Failed));
        }
        if !imported.saved.is_empty() {
            context.out.give(&imported, in_words);
        }
        let total = imported.saved.len() + imported.failed.len();
        let details = imported.failed.iter().flat_map(|refused| {
            let head = format!("{}: {}", refused.file, refused.message);
            std::iter::once(head).chain(refused.details.iter().map(|detail| format!("  {detail}")))
        });
        Err(Failure::new(
            Exit::Failed,
            "import",
            format!("{} of {total} files were not imported", imported.failed.len()),
        )
        .details(details.collect())
        .hint("correct what is named and import those files again; add --replace to revise tasks that exist"))
    }

    fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut files = vec![];
        for path in &self.paths {
            if !path.is_dir() {
                files.push(path.clone());
                continue;
            }
            let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let entries = entries.map_err(|why| Failure::io(format!("cannot read {}", path.display()), &why))?;
            let mut found: Vec<PathBuf> =
                entries.into_iter().map(|entry| entry.path()).filter(|path| is_task_file(path)).collect();
            found.sort();
            files.append(&mut found);
        }
        if files.is_empty() {
            return Err(Failure::usage("there is no task file").hint("task files end in `.toml`"));
        }
        Ok(files)
    }
}

/// What owd is asked to save, and under which name.
fn request(file: &Path, replace: bool) -> Result<(String, SaveTask), Failure> {
    let definition = Definition::read(file)?;
    let name = definition.named(None)?.as_str().to_owned();
    Ok((name, SaveTask { definition: definition.text, must_be_new: !replace, expect_revision: None }))
}

fn is_task_file(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && path.extension().is_some_and(|extension| extension == "toml")
}

fn in_words(imported: &Imported) -> String {
    let line = |saved: &SavedTask| format!("{}: {}\n", escape::line(&saved.name), escape::line(&saved.change));
    imported.saved.iter().map(line).collect::<String>()
        + "Steps that have side effects ask until they are allowed: owctl task allow NAME\n"
}
