use ow_model::{
    Answer, AnswerBy, Binding, BoundFile, Call, Category, Item, ItemKind, ItemState, Person, Question, Resolution,
    Surface,
};
use ow_protocol::{
    AnswerView, ApprovalView, BoundFileView, DeliveryView, DirectoryView, ItemView, QuestionView, ResolutionView,
};

use ow_store::DeliveryRow;

use super::rule::target_view;
use super::{instant, path};

/// An item as the control API shows it, for who tells of it elsewhere.
///
/// # Panics
///
/// Never: what the API shows is JSON.
#[must_use]
pub fn shown_item(item: &Item) -> serde_json::Value {
    serde_json::to_value(item_view(item.clone())).expect("the view's types have text keys only")
}

pub(crate) fn item_view(item: Item) -> ItemView {
    let Item {
        id,
        order: _,
        task,
        run,
        title,
        kind,
        created_at,
        expires_at,
        remind_at: _,
        reminded,
        state,
        holds_back,
        inbox,
        also,
    } = item;
    let (mut approval, mut questions, mut directory, mut text) = (None, vec![], None, None);
    let kind = match kind {
        ItemKind::Approval { call, hash, category, reason, binding, rule_offer, session_offer, diff } => {
            let Call { position, tool, args } = call;
            let Binding { working_directory, files, base: _, unbound } = binding;
            approval = Some(ApprovalView {
                tool: tool.to_string(),
                arguments: args,
                reason,
                category: category_word(category).into(),
                // A run's calls are counted within it; an approval without a run has a call of its own.
                call_id: run.map_or_else(|| format!("{id}/{position}"), |run| format!("{run}/{position}")),
                hash: hash.to_string(),
                working_directory: working_directory.as_deref().map(path),
                bound_files: files.iter().map(bound_file).collect(),
                unbound,
                diff,
                rule_offer: rule_offer.as_ref().map(target_view),
                tool_offer: session_offer.tool.is_some(),
                command_offer: session_offer.command,
            });
            "approval"
        }
        ItemKind::Question { questions: asked } => {
            questions = asked.into_iter().map(question_view).collect();
            "question"
        }
        ItemKind::Plan { text: plan } => {
            text = Some(plan);
            "plan"
        }
        ItemKind::Directory { path: folder, writable, reason } => {
            directory = Some(DirectoryView { path: path(&folder), writable, reason });
            "directory"
        }
        ItemKind::Budget { text: told } => {
            text = Some(told);
            "budget"
        }
        ItemKind::Notification { text: told } => {
            text = Some(told);
            "notification"
        }
    };
    ItemView {
        id: id.to_string(),
        token: id.token(),
        kind: kind.into(),
        title,
        task: task.map(|task| task.to_string()),
        run: run.map(|run| run.to_string()),
        state: state.word().into(),
        created_at: instant(created_at),
        expires_at: expires_at.map(instant),
        reminded,
        holds_back,
        inbox: inbox.to_string(),
        also: also.iter().map(ToString::to_string).collect(),
        approval,
        questions,
        directory,
        text,
        resolution: resolution(state),
    }
}

pub(crate) fn delivery_view(row: DeliveryRow) -> DeliveryView {
    let DeliveryRow { what, binding, state, created_at, due_at, attempts, done_at, error } = row;
    DeliveryView {
        what,
        binding: binding.shown().into_owned(),
        state,
        created_at: instant(created_at),
        due_at: instant(due_at),
        attempts,
        done_at: done_at.map(instant),
        error,
    }
}

const fn category_word(category: Category) -> &'static str {
    match category {
        Category::WriteLocal => "write-local",
        Category::Exec => "exec",
        Category::External => "external",
        Category::Read => "read",
        Category::UnknownOutcome => "unknown-outcome",
        Category::Stopped => "stopped",
    }
}

fn bound_file(file: &BoundFile) -> BoundFileView {
    let BoundFile { path: file, device: _, inode: _, hash } = file;
    BoundFileView { path: path(file), hash: hash.to_string() }
}

fn resolution(state: ItemState) -> Option<ResolutionView> {
    let by_owd = |kind: &str, text: Option<String>, at| ResolutionView {
        answer: AnswerView { kind: kind.into(), text },
        by: "owd".into(),
        surface: "owd".into(),
        at: instant(at),
    };
    match state {
        ItemState::Pending => None,
        ItemState::Expired { at } => Some(by_owd("expired", None, at)),
        ItemState::Withdrawn { at, why } => Some(by_owd("withdrawn", Some(why), at)),
        ItemState::Resolved(Resolution { answer, by: AnswerBy { person: Person(person), surface }, at }) => {
            Some(ResolutionView {
                answer: answer_view(answer),
                by: person,
                surface: surface_word(surface).into(),
                at: instant(at),
            })
        }
    }
}

fn question_view(question: Question) -> QuestionView {
    let Question { header, text, options, multi } = question;
    QuestionView { header, text, options, multi }
}

fn answer_view(answer: Answer) -> AnswerView {
    let (kind, text) = match answer {
        Answer::Once => ("approve", None),
        Answer::ForTask => ("approve-for-task", None),
        Answer::AlwaysTool => ("approve-tool", None),
        Answer::AlwaysCommand => ("approve-command", None),
        Answer::Edited { args } => ("edit", Some(args.to_string())),
        Answer::Deny { reason } => ("deny", reason),
        Answer::Text { text } => ("answer", Some(text)),
        Answer::Acknowledge => ("acknowledge", None),
    };
    AnswerView { kind: kind.into(), text }
}

const fn surface_word(surface: Surface) -> &'static str {
    match surface {
        Surface::Socket => "socket",
        Surface::Web => "web",
        Surface::Mail => "mail",
        Surface::Slack => "slack",
    }
}
