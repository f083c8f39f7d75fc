//! What comes into a chat, and what it wants done.

use std::path::PathBuf;
use std::time::Duration;

use ow_client::SessionEvent;
use ow_protocol::{AnswerRequest, ItemView, NewAttachment, SentMessage, SessionSettings, SessionView, UsageView};
use serde_json::Value;

use super::key::Key;
use crate::command::model::Price;
use crate::failure::Failure;

/// What comes in.
#[derive(Debug)]
pub(super) enum Input {
    /// Keys of one reading of the terminal, and when that was.
    Keys {
        keys: Vec<Key>,
        at: Duration,
    },
    /// Columns and rows of the terminal.
    Resized {
        columns: usize,
        rows: usize,
    },
    Event(SessionEvent),
    Told(Told),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    Ask(Ask),
    /// The person edits a call's arguments.
    Edit {
        item: String,
        arguments: Value,
    },
    /// What was said goes into the history.
    Remember(String),
    /// Go on with another chat.
    Switch(String),
    Leave,
    /// The program sleeps until the shell wakes it.
    Suspend,
    Bell,
    /// The screen is wiped; what is drawn anew stands at its top.
    Clear,
}

/// What owd, or the system, is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ask {
    Say {
        text: String,
        attachments: Vec<NewAttachment>,
    },
    Item(String),
    Answer {
        item: String,
        answer: AnswerRequest,
    },
    Interrupt,
    Set(SessionSettings),
    Compact,
    /// All pending items.
    Pending,
    Tools,
    Cost,
    Chats,
    Attach(PathBuf),
    /// Files, or models, whose names begin so; the word begins at this byte of the line.
    Complete {
        start: usize,
        word: String,
        of: Completed,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Completed {
    Files,
    Models,
}

/// The answers.
#[derive(Debug)]
pub(super) enum Told {
    Said(Box<SentMessage>),
    Item(Box<ItemView>),
    Answered,
    Interrupting,
    Session(Box<SessionView>),
    Compacting,
    Pending(Vec<ItemView>),
    /// Name, risk, what it does.
    Tools(Vec<[String; 3]>),
    Cost {
        usage: UsageView,
        price: Option<Price>,
    },
    Chats(Vec<SessionView>),
    Attached(NewAttachment),
    Candidates {
        start: usize,
        candidates: Vec<String>,
    },
    /// None: nothing was changed.
    Edited {
        item: String,
        arguments: Option<Value>,
    },
    NotEdited {
        item: String,
        why: Failure,
    },
    Failed {
        asked: Ask,
        why: Failure,
    },
}

/// What is said at the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Farewell {
    ComeBack,
    None,
}
