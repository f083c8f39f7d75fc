use std::path::Path;

use super::script::Script;
use crate::path::{Links, resolve};
use crate::{CommandForm, ResolvedPath};

/// What the words of a command may name in the file system, links followed.
///
/// Every word counts, and the value behind `=` too: telling operands from the rest needs knowledge of each
/// program, and a word that is no path merely names a file that does not exist.
#[must_use]
pub fn operands(form: &CommandForm, cwd: &Path, home: &Path, links: &dyn Links) -> Vec<ResolvedPath> {
    let script = match form {
        CommandForm::Argv(argv) => Script::of_argv(argv, Some(cwd)),
        CommandForm::Line(line) => Script::read(line, home, Some(cwd)),
    };
    let mut found: Vec<ResolvedPath> = vec![];
    for part in script.parts() {
        let base = part.cwd.as_deref().unwrap_or(cwd);
        let words = part.words.iter().skip(1).map(|word| word.text.as_str());
        for word in words.chain(part.writes.iter().chain(&part.reads).map(String::as_str)) {
            let value = word.split_once('=').map(|(_, value)| value);
            // A revision may name a file behind its colon.
            let file = word.split_once(':').map(|(_, file)| file);
            for text in [Some(word), value, file].into_iter().flatten().filter(|text| !text.is_empty()) {
                // The shell has expanded its own tildes; one that is left is a letter of the name.
                let asked = if text.starts_with('~') { format!("./{text}") } else { text.to_owned() };
                if let Ok(path) = resolve(Path::new(&asked), base, home, links) {
                    let path = ResolvedPath { asked: text.into(), ..path };
                    if !found.contains(&path) {
                        found.push(path);
                    }
                }
            }
        }
    }
    found
}
