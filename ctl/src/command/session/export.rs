use std::path::PathBuf;

use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::write;
use crate::reference::Reference;

/// Write all that was said in a chat or a run, as Markdown; with --json as data
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl session export 4k7 > chat.md
  owctl session export 4k7 --json --to chat.json")]
pub(crate) struct Export {
    /// The id of a chat or of a task's run, or a unique beginning of it
    session: Reference,
    /// Into this file instead of standard output; it must not exist
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let id = self.session.as_str();
        let bytes = context.with_daemon(async |owd| {
            if context.out.is_json() {
                let export = owd.export_session(id).await?;
                let mut bytes = serde_json::to_vec_pretty(&export).expect("wire types write to memory");
                bytes.push(b'\n');
                return Ok(bytes);
            }
            Ok(owd.export_session_as_text(id).await?)
        })?;
        let Some(file) = &self.to else {
            let text = String::from_utf8_lossy(&bytes);
            write(&if context.out.is_json() { escape::json(&text) } else { escape::block(&text) });
            return Ok(());
        };
        let doing = || format!("cannot write {}", file.display());
        let mut open = std::fs::File::create_new(file).map_err(|why| Failure::io(doing(), &why))?;
        std::io::Write::write_all(&mut open, &bytes).map_err(|why| Failure::io(doing(), &why))?;
        context.out.note(&format!("It is in {}", escape::line(&file.to_string_lossy())));
        Ok(())
    }
}
