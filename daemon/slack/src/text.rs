//! Text as Slack writes it, and as a person does.

use std::fmt::Write as _;

/// What a person typed: links and mentions unwrapped, entities and the emoji of answers put back as their signs.
///
/// Mentions of the bot itself say whom it is for, and nothing else: they are left out.
#[must_use]
pub fn plain(text: &str, bot: &str) -> String {
    let mut typed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        typed.push_str(before);
        let Some(end) = from.find('>') else {
            rest = from;
            break;
        };
        unwrap(&mut typed, &from[1..end], bot);
        rest = &from[end + 1..];
    }
    typed.push_str(rest);
    let typed = with_signs(&typed);
    with_marked_quote(&typed.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

/// In Slack `>>>` quotes all that follows it, which is marked here line by line as everywhere else.
fn with_marked_quote(typed: &str) -> String {
    let mut quoted = false;
    let marked = typed.split('\n').map(|line| {
        let mark = if quoted { "> " } else { "" };
        quoted |= line.trim_start().starts_with(">>>");
        format!("{mark}{line}")
    });
    marked.collect::<Vec<_>>().join("\n")
}

/// Writes out what stands in `<…>`.
fn unwrap(typed: &mut String, inner: &str, bot: &str) {
    let (what, label) = inner.split_once('|').map_or((inner, None), |(what, label)| (what, Some(label)));
    match what.chars().next() {
        Some('@') if &what[1..] == bot => {}
        Some('#' | '!') => {
            let sign = if what.starts_with('#') { '#' } else { '@' };
            typed.push(sign);
            typed.push_str(label.unwrap_or(&what[1..]));
        }
        Some('@') => {
            typed.push('@');
            typed.push_str(label.unwrap_or(&what[1..]));
        }
        _ => {
            let bare = what.split_once("://").map_or(what, |(_, rest)| rest);
            let bare = bare.strip_prefix("mailto:").or_else(|| bare.strip_prefix("tel:")).unwrap_or(bare);
            match label {
                // Slack made the link of what was typed.
                Some(label) if label == bare || label == what => typed.push_str(label),
                Some(label) => {
                    // Infallible on a string.
                    write!(typed, "{label} ({what})").unwrap_or_default();
                }
                None => typed.push_str(what),
            }
        }
    }
}

/// The emoji that an answer may hold, as Slack names them.
const SIGNS: [(&str, char); 14] = [
    ("+1", '👍'),
    ("thumbsup", '👍'),
    ("white_check_mark", '✅'),
    ("heavy_check_mark", '✔'),
    ("ballot_box_with_check", '☑'),
    ("-1", '👎'),
    ("thumbsdown", '👎'),
    ("x", '❌'),
    ("heavy_multiplication_x", '✖'),
    ("no_entry_sign", '🚫'),
    ("no_entry", '⛔'),
    ("octagonal_sign", '🛑'),
    ("stop_sign", '🛑'),
    ("negative_squared_cross_mark", '❎'),
];

/// The sign of a reaction or of an emoji's name, whatever its skin tone.
#[must_use]
pub fn sign(name: &str) -> Option<char> {
    let bare = name.split("::").next().unwrap_or(name);
    SIGNS.iter().find(|(known, _)| *known == bare).map(|(_, sign)| *sign)
}

/// With `:+1:` and its like as signs; other names stay as they are.
fn with_signs(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, from) = rest.split_at(at);
        made.push_str(before);
        let name = from[1..].split(':').next().filter(|name| from.get(name.len() + 1..=name.len() + 1) == Some(":"));
        let Some((name, sign)) = name.and_then(|name| sign(name).map(|sign| (name, sign))) else {
            made.push(':');
            rest = &from[1..];
            continue;
        };
        made.push(sign);
        rest = &from[name.len() + 2..];
        // `:+1::skin-tone-2:`
        if let Some(tone) = rest.strip_prefix(":skin-tone-")
            && let Some((tone, after)) = tone.split_once(':')
            && tone.chars().all(|letter| letter.is_ascii_digit())
        {
            rest = after;
        }
    }
    made.push_str(rest);
    made
}

/// For Slack's mrkdwn and a message's plain text: shown as it is, linking and calling nobody.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slack_wraps_is_read_as_it_was_typed() {
        for (text, typed) in [
            ("<@UBOT> run report", " run report"),
            ("<@UBOT|owd> run", " run"),
            ("ask <@U2>", "ask @U2"),
            ("ask <@U2|bob>", "ask @bob"),
            ("in <#C1|general>", "in #general"),
            ("<!here> now", "@here now"),
            ("<!subteam^S1|@team>", "@@team"),
            ("see <http://example.com|example.com>", "see example.com"),
            ("see <https://example.com/a?b&amp;c>", "see https://example.com/a?b&c"),
            ("<mailto:a@b.org|a@b.org>", "a@b.org"),
            ("<https://evil.example|approve>", "approve (https://evil.example)"),
            ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
            ("&gt; quoted", "> quoted"),
            (":+1:", "👍"),
            (":+1::skin-tone-3: ok", "👍 ok"),
            (":thumbsup: :white_check_mark:", "👍 ✅"),
            (":tada: 10:30: done", ":tada: 10:30: done"),
            ("::+1:", ":👍"),
            ("a < b", "a < b"),
            ("&gt;&gt;&gt; Bob said\nyes", ">>> Bob said\n> yes"),
            ("no\n&gt; yes\nwait", "no\n> yes\nwait"),
        ] {
            assert_eq!(plain(text, "UBOT"), typed, "{text}");
        }
    }

    #[test]
    fn what_is_shown_calls_nobody() {
        assert_eq!(escaped("<!channel> & <@U1>"), "&lt;!channel&gt; &amp; &lt;@U1&gt;");
    }
}
