use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ow_reply::{Context as Against, Explained, Kind, Message, Pending, Phrases, Proof, State, explain, tokens};

use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::time::Toward;

/// What a reply to a notice decides, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  echo 'Approved, thanks.' | owctl explain reply --text -
  owctl explain reply --mail answer.eml --pending 3f9c2a71b4de --approver alex@example.org --authserv-id mx.example.net
  owctl explain reply --text 2 --kind question --option eu-west --option us-east

An approval is the whole new text: an allow phrase, with thanks and a name at most. Quotes, signatures and hidden text do
not count. Without --pending the item that the message names is taken to wait; without --approver anybody may answer;
without --authserv-id who sent it is not proven, only compared.")]
#[command(group = clap::ArgGroup::new("message").required(true))]
pub(crate) struct Reply {
    /// A whole mail; `-` reads it from standard input
    #[arg(long, value_name = "FILE", group = "message")]
    mail: Option<PathBuf>,
    /// What a person wrote; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", group = "message", allow_hyphen_values = true)]
    text: Option<String>,
    /// What the reply answers, where --pending does not say
    #[arg(long, value_name = "KIND", default_value = "approval")]
    kind: KindName,
    /// A label that a question offers, in order
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    option: Vec<String>,
    /// An item that there is: its kind is --kind and its state `pending` if not said
    #[arg(long, value_name = "ID[:KIND[:STATE]]", value_parser = item)]
    pending: Vec<Item>,
    /// Whose mail counts
    #[arg(long, value_name = "ADDRESS")]
    approver: Vec<String>,
    /// The relay whose topmost Authentication-Results proves the sender
    #[arg(long, value_name = "NAME")]
    authserv_id: Option<String>,
    /// The present; now if not given
    #[arg(long, value_name = "INSTANT")]
    now: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    Approval,
    Question,
    Notification,
}

#[derive(Clone, Debug)]
struct Item {
    id: String,
    kind: Option<KindName>,
    state: State,
}

/// How an item can stand that takes no answer any more.
const CLOSED: &[&str] =
    &["approved", "denied", "answered", "acknowledged", "resolved", "expired", "withdrawn", "cancelled", "done"];

fn item(text: &str) -> Result<Item, String> {
    let mut parts = text.splitn(3, ':');
    let id = parts.next().unwrap_or_default();
    // An id is what a token can hold.
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) || tokens(&format!("[ow:{id}]")).len() != 1 {
        return Err(format!("`{id}` is not an id: write 6 to 64 letters and digits"));
    }
    let kind = match parts.next().filter(|kind| !kind.is_empty()) {
        // Plans and folders are asked for as approvals are.
        Some("plan" | "directory") => Some(KindName::Approval),
        Some(kind) => Some(
            KindName::from_str(kind, true)
                .map_err(|_| format!("`{kind}` is not a kind: write approval, question or notification"))?,
        ),
        None => None,
    };
    let state = match parts.next().filter(|state| !state.is_empty()) {
        None | Some("pending") => State::Pending,
        Some(state) if CLOSED.contains(&state) => State::Closed(state.to_owned()),
        Some(state) => {
            return Err(format!("`{state}` is not a state: write pending, {}", CLOSED.join(", ")));
        }
    };
    Ok(Item { id: id.to_owned(), kind, state })
}

impl Reply {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let now = match &self.now {
            Some(text) => context.clock().read_instant(text, Toward::Past)?,
            None => context.clock().now(),
        };
        let kind = self.kind_of(self.kind);
        let pending: Vec<Pending> = self
            .pending
            .iter()
            .map(|item| Pending {
                id: item.id.clone(),
                kind: self.kind_of(item.kind.unwrap_or(self.kind)),
                state: item.state.clone(),
            })
            .collect();
        let phrases = Phrases::default();
        let against = Against {
            pending: &pending,
            kind: &kind,
            approvers: &self.approver,
            proof: self.authserv_id.as_deref().map_or(Proof::Given, Proof::Relay),
            now,
            phrases: &phrases,
        };
        let explained = match (&self.mail, &self.text) {
            (Some(file), _) => explain(Message::Mail(&read_mail(file)?), &against),
            (None, Some(text)) if text == "-" => {
                let raw = read_mail(Path::new("-"))?;
                explain(Message::Text(&String::from_utf8_lossy(&raw)), &against)
            }
            (None, text) => explain(Message::Text(text.as_deref().unwrap_or_default()), &against),
        };
        context.out.give(&explained, |explained| in_words(explained, context));
        Ok(())
    }

    fn kind_of(&self, kind: KindName) -> Kind {
        match kind {
            KindName::Approval => Kind::Approval,
            KindName::Question => Kind::Question { options: self.option.clone() },
            KindName::Notification => Kind::Notification,
        }
    }
}

pub(crate) fn read_mail(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut raw = vec![];
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut raw).map_err(|why| Failure::io("cannot read standard input", &why))?;
        return Ok(raw);
    }
    std::fs::read(file).map_err(|why| {
        Failure::new(Exit::Usage, "unreadable_mail", format!("cannot read `{}`: {why}", file.display()))
            .hint("name a file that holds one whole mail, or `-` for standard input")
    })
}

fn in_words(explained: &Explained, context: &Context) -> String {
    let Explained { token, decision, answer, comment, why, cause: _ } = explained;
    let mut words = format!("{}: {}\n", context.out.paint.state(decision), escape::line(why));
    for (name, value) in [("item", token), ("answer", answer), ("comment", comment)] {
        if let Some(value) = value {
            put!(words, "{name} {}\n", escape::line(value));
        }
    }
    words
}
