//! An item in words.

use ow_protocol::{ApprovalView, DeliveryView, ItemView, ResolutionView};

use crate::command::rule::target_in_words;
use crate::command::run::view::arguments;
use crate::escape;
use crate::output::{Colour, Paint};
use crate::table::pairs;
use crate::time::Clock;

/// All of an item: nobody should have to answer what they cannot see.
pub(crate) fn whole(item: &ItemView, clock: &Clock, paint: Paint) -> String {
    let mut text = format!("{}\n\n", paint.in_colour(Colour::Bold, &escape::line(&item.title)));
    let mut rows = vec![
        ("item", format!("{}  {}", escape::line(&item.id), escape::line(&item.token)).into()),
        ("kind", escape::line(&item.kind)),
        ("state", paint.state(&item.state).into()),
    ];
    if let Some(task) = &item.task {
        rows.push(("task", escape::line(task)));
    }
    if let Some(run) = &item.run {
        rows.push(("run", escape::line(run)));
    }
    if !item.also.is_empty() {
        let inboxes: Vec<_> = std::iter::once(&item.inbox).chain(&item.also).map(|inbox| escape::line(inbox)).collect();
        rows.push(("inboxes", inboxes.join(", ").into()));
    } else if !matches!(item.inbox.as_str(), "" | "default") {
        rows.push(("inbox", escape::line(&item.inbox)));
    }
    rows.push(("asked", clock.when(&item.created_at).into()));
    if let (Some(at), "pending") = (&item.expires_at, item.state.as_str()) {
        rows.push(("expires", format!("{}; then it counts as denied", clock.when(at)).into()));
    }
    if item.holds_back > 0 {
        rows.push(("holds back", format!("{} scheduled runs so far", item.holds_back).into()));
    }
    if let Some(approval) = &item.approval {
        rows.push(("wants", format!("{} ({})", escape::line(&approval.tool), escape::line(&approval.category)).into()));
    }
    text.push_str(&pairs(paint, &rows));
    if let Some(approval) = &item.approval {
        text.push('\n');
        text.push_str(&self::approval(approval, paint));
    }
    for question in &item.questions {
        put!(text, "\n{}\n", escape::block(&question.text));
        for (index, option) in question.options.iter().enumerate() {
            put!(text, "  {}. {}\n", index + 1, escape::line(option));
        }
    }
    if let Some(directory) = &item.directory {
        let how = if directory.writable { "read and write in" } else { "read" };
        put!(text, "\nIt asks to {how} {}: {}\n", escape::line(&directory.path), escape::line(&directory.reason));
    }
    if let Some(notice) = &item.text {
        put!(text, "\n{}\n", escape::block(&clock.in_sentence(notice)));
    }
    text.push('\n');
    match &item.resolution {
        Some(resolution) => text.push_str(&self::resolution(resolution, clock)),
        None => text.push_str(&how_to_answer(item)),
    }
    text
}

/// Where an item was told of; nothing where nothing is bound.
pub(crate) fn deliveries(deliveries: &[DeliveryView], clock: &Clock) -> String {
    if deliveries.is_empty() {
        return String::new();
    }
    let mut text = "\nTold of:\n".to_owned();
    for delivery in deliveries {
        let DeliveryView { what, binding, state, created_at: _, due_at, attempts, done_at, error } = delivery;
        let when = match (state.as_str(), done_at) {
            ("sent", Some(at)) => format!("sent {}", clock.when(at)),
            ("failed", Some(at)) => format!("given up {} after {attempts} attempts", clock.when(at)),
            ("dropped", _) => "needless by then".into(),
            ("taken", _) => "under way".into(),
            _ if *attempts == 1 => format!("tried once, again {}", clock.when(due_at)),
            _ if *attempts > 0 => format!("tried {attempts} times, again {}", clock.when(due_at)),
            _ => format!("due {}", clock.when(due_at)),
        };
        let why = error.as_ref().filter(|_| !matches!(state.as_str(), "sent" | "dropped"));
        let why = why.map_or(String::new(), |why| format!(": {}", escape::line(why)));
        put!(text, "  {:<10} {}  {when}{why}\n", escape::line(what), escape::line(binding));
    }
    text
}

/// What handing on has made of an item.
pub(crate) fn delegated(item: &ItemView) -> String {
    let inboxes: Vec<_> = std::iter::once(&item.inbox).chain(&item.also).map(|inbox| escape::line(inbox)).collect();
    format!("{} is in the inboxes {}\n", escape::line(&item.id), inboxes.join(", "))
}

fn approval(approval: &ApprovalView, paint: Paint) -> String {
    let mut text = arguments(&approval.arguments, "  ");
    if let Some(folder) = &approval.working_directory {
        put!(text, "  in {}\n", escape::line(folder));
    }
    put!(text, "\nIt asks because: {}\n", escape::line(&approval.reason));
    if let Some(diff) = &approval.diff {
        text.push('\n');
        for line in diff.lines() {
            let safe = escape::line(line);
            text.push_str(&match line.as_bytes().first() {
                Some(b'+') => paint.in_colour(Colour::Green, &safe),
                Some(b'-') => paint.in_colour(Colour::Red, &safe),
                _ => safe.into_owned(),
            });
            text.push('\n');
        }
    }
    if !approval.bound_files.is_empty() {
        text.push_str("\nYour answer holds for these files as they are now:\n");
        for file in &approval.bound_files {
            put!(text, "  {}\n", escape::line(&file.path));
        }
    }
    if let Some(unbound) = &approval.unbound {
        put!(text, "Not bound: {}\n", escape::line(unbound));
    }
    if let Some(offer) = &approval.rule_offer {
        put!(text, "\nWith --for-task it would also be allowed from now on: {}\n", target_in_words(offer));
    }
    text
}

fn resolution(resolution: &ResolutionView, clock: &Clock) -> String {
    let ResolutionView { answer, by, surface, at } = resolution;
    let text = answer.text.as_ref().map_or(String::new(), |text| format!(": {}", escape::line(text)));
    format!(
        "{} by {} over {}, {}{text}\n",
        escape::line(&answer.kind),
        escape::line(by),
        escape::line(surface),
        clock.when(at)
    )
}

fn how_to_answer(item: &ItemView) -> String {
    let id = escape::line(&item.id);
    match item.kind.as_str() {
        "approval" => {
            let for_task = item.approval.as_ref().and_then(|approval| approval.rule_offer.as_ref());
            let for_task = for_task.map_or(String::new(), |_| format!("  owctl inbox approve {id} --for-task\n"));
            let offered = |is_offered: bool, flag: &str| {
                if is_offered { format!("  owctl inbox approve {id} {flag}\n") } else { String::new() }
            };
            let in_session = item.approval.as_ref().map_or(String::new(), |approval| {
                offered(approval.tool_offer, "--tool") + &offered(approval.command_offer.is_some(), "--command")
            });
            format!(
                "Answer with one of\n  owctl inbox approve {id}\n{for_task}{in_session}  owctl inbox approve {id} --edit\n  \
                 owctl inbox deny {id} --reason 'why not'\n"
            )
        }
        "plan" | "directory" | "budget" => {
            format!("Answer with one of\n  owctl inbox approve {id}\n  owctl inbox deny {id} --reason 'why not'\n")
        }
        "question" if item.questions.len() > 1 => {
            let answers = " 'an answer'".repeat(item.questions.len());
            format!("Answer with\n  owctl inbox answer {id}{answers}\n")
        }
        "question" => format!("Answer with\n  owctl inbox answer {id} 'your answer'\n"),
        _ => format!("Read it? owctl inbox approve {id}\n"),
    }
}

/// What an answer did, in words.
pub(crate) fn answered(item: &ItemView, clock: &Clock, paint: Paint) -> String {
    let mut text = format!("{}: {}\n", paint.state(&item.state), escape::line(&item.title));
    if let Some(answer) = &item.resolution {
        text.push_str(&resolution(answer, clock));
    }
    if let Some(run) = &item.run {
        put!(text, "Watch the run: owctl run watch {}\n", escape::line(run));
    }
    text
}

/// The item in a line, as a live view shows it.
pub(crate) fn one_line(item: &ItemView, clock: &Clock, paint: Paint) -> String {
    let at = paint.in_colour(Colour::Dim, &clock.local(&item.created_at));
    format!(
        "{at}  {}  {}  {}  {}",
        escape::line(&item.id),
        escape::line(&item.kind),
        paint.state(&item.state),
        escape::line(&item.title)
    )
}
