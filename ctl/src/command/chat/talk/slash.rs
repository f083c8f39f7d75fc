//! Commands of the chat itself: lines that begin with `/`. None of them ever reaches the model.

/// What a line with `/` asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Slash {
    Model(Option<String>),
    Mode(Option<String>),
    Compact,
    Attach(Option<String>),
    Inbox,
    Plan(Option<String>),
    Tools,
    Cost,
    Resume(Option<String>),
    Help,
    Quit,
}

/// Why a line with `/` asks for nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct NoCommand {
    pub(super) message: String,
    pub(super) hint: String,
}

pub(super) const MODES: [&str; 4] = ["plan", "ask", "edit", "auto"];

/// Name, argument, and what it is for; in the order of the help.
pub(super) const COMMANDS: [(&str, &str, &str); 11] = [
    ("/model", "[NAME]", "show the model, or take another from the next call on"),
    ("/mode", "[plan|ask|edit|auto]", "how far it may go by itself"),
    ("/plan", "[TEXT]", "mode plan: it only looks, and proposes what to do; TEXT is said to it"),
    ("/attach", "[FILE]", "a file to go with the next message; without one, those that are to go"),
    ("/inbox", "", "what waits for you, here and elsewhere; asks again what was put aside"),
    ("/tools", "", "what it can do, and what of that asks"),
    ("/cost", "", "tokens and money so far"),
    ("/compact", "", "go on with a summary of what was said, to make room"),
    ("/resume", "[ID]", "the last chats, or go on with another"),
    ("/help", "", "this list"),
    ("/quit", "", "leave; a turn that runs goes on, and what it asks is in the Inbox"),
];

/// Reads a line; none: it is to be said.
pub(super) fn read(line: &str) -> Option<Result<Slash, NoCommand>> {
    let line = line.trim_end();
    if !line.starts_with('/') {
        return None;
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    let bare = |command: Slash| match &rest {
        None => Ok(command),
        Some(rest) => Err(NoCommand {
            message: format!("{name} takes nothing, found `{rest}`"),
            hint: format!("{name} alone, or begin with a blank to say the line as it is"),
        }),
    };
    Some(match name {
        "/model" => Ok(Slash::Model(rest)),
        "/mode" => match rest.as_deref() {
            Some(mode) if !MODES.contains(&mode) => {
                Err(NoCommand { message: format!("`{mode}` is no mode"), hint: format!("use {}", MODES.join(", ")) })
            }
            _ => Ok(Slash::Mode(rest)),
        },
        "/plan" => Ok(Slash::Plan(rest)),
        "/attach" => Ok(Slash::Attach(rest)),
        "/resume" => Ok(Slash::Resume(rest)),
        "/compact" => bare(Slash::Compact),
        "/inbox" => bare(Slash::Inbox),
        "/tools" => bare(Slash::Tools),
        "/cost" => bare(Slash::Cost),
        "/help" => bare(Slash::Help),
        "/quit" | "/exit" => bare(Slash::Quit),
        _ => Err(unknown(name)),
    })
}

fn unknown(name: &str) -> NoCommand {
    let close = COMMANDS.iter().map(|(known, ..)| (distance(name, known), *known)).min();
    let meant =
        close.filter(|(far, _)| *far <= 2).map_or(String::new(), |(_, known)| format!("did you mean {known}? "));
    NoCommand {
        message: format!("there is no command {name}; nothing was sent"),
        hint: format!("{meant}/help lists them; begin with a blank to say the line as it is"),
    }
}

/// How many letters have to be added, removed or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for at in 0..other.len() {
            let changed = diagonal + usize::from(letter != other[at]);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

/// What the word under the cursor may become: where it begins, and the candidates. None: files, or nothing.
pub(super) fn completions(before: &str) -> Option<(usize, Vec<String>)> {
    if before.starts_with('/') && !before.contains(char::is_whitespace) {
        let fitting =
            COMMANDS.iter().filter(|(name, ..)| name.starts_with(before)).map(|(name, ..)| format!("{name} "));
        return Some((0, fitting.collect()));
    }
    let typed = before.strip_prefix("/mode ")?;
    let fitting = MODES.iter().filter(|mode| mode.starts_with(typed)).map(|mode| (*mode).to_owned());
    Some((before.len() - typed.len(), fitting.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_slash_is_a_command_or_an_error_never_said() {
        assert_eq!(read("hello /model"), None);
        assert_eq!(read(" /etc/hosts is wrong"), None, "a blank before it says that it is text");
        assert_eq!(read("/model a:b "), Some(Ok(Slash::Model(Some("a:b".into())))));
        assert_eq!(read("/plan"), Some(Ok(Slash::Plan(None))));
        let wrong = |line: &str| match read(line) {
            Some(Err(NoCommand { message, hint })) => format!("{message} | {hint}"),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(
            wrong("/modle x"),
            "there is no command /modle; nothing was sent | did you mean /mode? /help lists them; begin with a blank to say the line as it is"
        );
        assert_eq!(
            wrong("/etc/hosts is wrong"),
            "there is no command /etc/hosts; nothing was sent | /help lists them; begin with a blank to say the line as it is"
        );
        assert_eq!(wrong("/mode fast"), "`fast` is no mode | use plan, ask, edit, auto");
        assert!(wrong("/compact now").starts_with("/compact takes nothing, found `now`"));
    }

    #[test]
    fn each_listed_command_is_read() {
        for (name, ..) in COMMANDS {
            assert!(matches!(read(name), Some(Ok(_))), "{name}");
        }
    }

    #[test]
    fn commands_and_modes_complete_themselves() {
        assert_eq!(completions("/mo"), Some((0, vec!["/model ".into(), "/mode ".into()])));
        assert_eq!(completions("/mode a"), Some((6, vec!["ask".into(), "auto".into()])));
        assert_eq!(completions("hello"), None);
    }
}
