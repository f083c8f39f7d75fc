//! What was attached to a session's history, at hand when a request is put together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ow_model::{Attachment, BlobHash, Message, Span};
use ow_provider::Attachments;
use ow_store::StoreError;
use ow_tool::{Helpers, HookExit, HookJob, program_in_path};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::calls::write_anew;
use crate::engine::Engine;
use crate::session::blocking;

/// Draws the text of a PDF; part of Poppler.
const PDF_READER: &str = "pdftotext";
/// What it may take for one file.
const PDF_TIME: Span = Span::from_secs(30);
/// What is kept of its text; the provider cuts shorter still.
const PDF_TEXT: usize = 1024 * 1024;

/// Bytes, and the texts of PDFs, by hash; read once a worker.
#[derive(Default)]
pub(super) struct Shelf {
    bytes: HashMap<BlobHash, Arc<[u8]>>,
    texts: HashMap<BlobHash, Arc<str>>,
}

impl Shelf {
    /// Takes in what this history names. `folder`: where a file may lie for a moment.
    pub(super) async fn take_in(
        &mut self,
        engine: &Engine,
        folder: &Path,
        history: &[Arc<Message>],
        stop: &CancellationToken,
    ) -> Result<Arc<dyn Attachments>, StoreError> {
        for attachment in history.iter().flat_map(|message| attached(message)) {
            let hash = attachment.hash;
            if self.bytes.contains_key(&hash) {
                continue;
            }
            let Some(bytes) = engine.store.blob(hash).await? else { continue };
            let bytes: Arc<[u8]> = bytes.into();
            if is_pdf(attachment)
                && let Some(text) = pdf_text(&engine.helpers, folder, attachment, Arc::clone(&bytes), stop).await
            {
                self.texts.insert(hash, text.into());
            }
            self.bytes.insert(hash, bytes);
        }
        Ok(Arc::new(AtHand { bytes: self.bytes.clone(), texts: self.texts.clone() }))
    }
}

fn attached(message: &Message) -> &[Attachment] {
    match message {
        Message::User { input, .. } => &input.attachments,
        Message::Tool { images, .. } => images,
        Message::Assistant { .. } | Message::Notice { .. } => &[],
    }
}

struct AtHand {
    bytes: HashMap<BlobHash, Arc<[u8]>>,
    texts: HashMap<BlobHash, Arc<str>>,
}

impl Attachments for AtHand {
    fn bytes(&self, attachment: &Attachment) -> Option<Vec<u8>> {
        self.bytes.get(&attachment.hash).map(|bytes| bytes.to_vec())
    }

    fn text(&self, attachment: &Attachment) -> Option<String> {
        self.texts.get(&attachment.hash).map(|text| text.as_ref().to_owned())
    }
}

fn is_pdf(attachment: &Attachment) -> bool {
    let kind = attachment.media_type.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/pdf")
}

/// The text of a PDF, for models that cannot read one; none where no reader is installed, or it finds no text. It reads
/// what somebody else made, so it runs in a helper, bounded in time and output.
async fn pdf_text(
    helpers: &Helpers,
    folder: &Path,
    attachment: &Attachment,
    bytes: Arc<[u8]>,
    stop: &CancellationToken,
) -> Option<String> {
    let name = &attachment.name;
    let Some(program) = program_in_path(PDF_READER) else {
        info!(attachment = %name, "its text is not drawn: `{PDF_READER}` is not installed");
        return None;
    };
    let path = folder.join(format!("{}.pdf", attachment.hash));
    let written = {
        let path = path.clone();
        blocking(move || {
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            write_anew(&path, &bytes)
        })
    };
    let drawn = match written.await {
        Ok(()) => draw(helpers, program, &path, stop).await,
        Err(error) => Err(error.to_string()),
    };
    blocking(move || drop(std::fs::remove_file(path))).await;
    match drawn {
        Ok(text) if text.trim().is_empty() => None,
        Ok(text) => Some(text),
        Err(why) => {
            warn!(attachment = %name, why, "the text of a PDF cannot be drawn");
            None
        }
    }
}

async fn draw(helpers: &Helpers, program: PathBuf, path: &Path, stop: &CancellationToken) -> Result<String, String> {
    let helper = helpers.ready().await.map_err(|error| format!("no helper process: {error}"))?;
    let arguments = ["-q", "-enc", "UTF-8"].into_iter().map(String::from);
    let job = HookJob {
        program,
        arguments: arguments.chain([path.to_string_lossy().into_owned(), "-".to_owned()]).collect(),
        cwd: path.parent().unwrap_or(path).to_path_buf(),
        stdin: String::new(),
        time: PDF_TIME,
        stream_bytes: PDF_TEXT,
    };
    let end = helper.run_hook(job, stop).await;
    match end.how {
        HookExit::Status(0) => Ok(end.stdout),
        how => Err(format!("{how:?}: {}", end.stderr.trim())),
    }
}
