use mail_parser::decoders::html::add_html_token;

use crate::colour::{Ground, Paint, WHITE, alike, colour, ground};
use crate::quote::{Line, marked};
use crate::signature::takes_back;
use crate::style::{Rule, Style, declarations, sheet};

/// Elements deeper than this are not read; the mail is then one that nobody wrote.
const DEEPEST: usize = 400;

/// Renders HTML as the lines that a person sees, with the depth of the quotes they stand in.
///
/// What is hidden, by style, size or the colour of its ground, is left out, and so are signatures that a program marked.
/// Struck-out text comes as `~~text~~`: it is seen, and it is taken back.
pub(crate) fn visible(html: &str) -> Vec<Line> {
    let mut page = Page::default();
    let mut rest = html;
    while !rest.is_empty() {
        let Some(open) = rest.find('<') else {
            page.text(rest);
            break;
        };
        page.text(&rest[..open]);
        rest = &rest[open..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            // As browsers read it: `<!-->` and `<!--->` are whole.
            let end = comment.find("-->").map(|at| at + 3);
            let short = ["->", ">"].iter().find(|short| comment.starts_with(**short)).map(|short| short.len());
            rest = &comment[short.or(end).unwrap_or(comment.len())..];
            continue;
        }
        let Some(tag) = Tag::read(rest) else {
            page.text("<");
            rest = &rest[1..];
            continue;
        };
        rest = &rest[tag.length..];
        if tag.closes {
            page.close(&tag.name);
            continue;
        }
        if let "style" | "script" | "title" | "textarea" | "xmp" | "iframe" | "noembed" | "noframes" = tag.name.as_str()
        {
            let end = find_close(rest, &tag.name);
            match tag.name.as_str() {
                "style" => page.rules.extend(sheet(&rest[..end])),
                "textarea" | "xmp" | "iframe" | "noembed" | "noframes" => page.unsure(&rest[..end]),
                _ => {}
            }
            rest = &rest[end..];
            continue;
        }
        page.open(&tag);
    }
    page.finish()
}

/// Where `</name` stands.
fn find_close(text: &str, name: &str) -> usize {
    let found = text
        .match_indices("</")
        .find(|(at, _)| text.get(at + 2..at + 2 + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)));
    found.map_or(text.len(), |(at, _)| at)
}

#[derive(Debug)]
struct Tag {
    name: String,
    closes: bool,
    attributes: Vec<(String, String)>,
    /// In bytes, with the brackets.
    length: usize,
}

impl Tag {
    /// Reads a tag, a declaration or a processing instruction at the beginning of `text`, which begins with `<`.
    fn read(text: &str) -> Option<Self> {
        let after = &text[1..];
        let closes = after.starts_with('/');
        let inner = if closes { &after[1..] } else { after };
        let first = inner.chars().next()?;
        if matches!(first, '!' | '?') {
            let length = text.find('>').map_or(text.len(), |end| end + 1);
            return Some(Self { name: String::new(), closes: true, attributes: vec![], length });
        }
        if !first.is_ascii_alphabetic() {
            return None;
        }
        let name_end =
            inner.find(|letter: char| letter.is_whitespace() || matches!(letter, '>' | '/')).unwrap_or(inner.len());
        let name = inner[..name_end].to_ascii_lowercase();
        let mut attributes = vec![];
        let mut rest = &inner[name_end..];
        loop {
            rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
            if rest.is_empty() {
                break;
            }
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            // The first letter may be anything, a `=` too.
            let end = rest
                .char_indices()
                .skip(1)
                .find(|(_, letter)| letter.is_whitespace() || matches!(letter, '>' | '/' | '='))
                .map_or(rest.len(), |(end, _)| end);
            let attribute = rest[..end].to_ascii_lowercase();
            rest = rest[end..].trim_start();
            let mut value = String::new();
            if let Some(after) = rest.strip_prefix('=') {
                let after = after.trim_start();
                let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''));
                let (found, left) = match quote {
                    Some(quote) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
                    None => after.split_at(
                        after.find(|letter: char| letter.is_whitespace() || letter == '>').unwrap_or(after.len()),
                    ),
                };
                value = decoded(found);
                rest = left;
            }
            attributes.push((attribute, value));
        }
        Some(Self { name, closes, attributes, length: text.len() - rest.len() })
    }

    fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(known, _)| known == name)
    }
}

/// Text with its entities read.
fn decoded(text: &str) -> String {
    /// No entity has a longer name.
    const NAME: usize = 32;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(NAME).position(|byte| byte == b';').map_or(1, |end| end + 1);
        if end == 1 {
            // Browsers read this one without its end.
            if let Some(after) = rest.strip_prefix("&nbsp") {
                out.push('\u{a0}');
                rest = after;
                continue;
            }
            out.push('&');
        } else {
            add_html_token(&mut out, &rest.as_bytes()[..end], false);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// What holds inside an element.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is inherited by itself, as in a style sheet")]
struct Inside {
    tag: String,
    hidden: bool,
    no_size: bool,
    colour: Paint,
    ground: Ground,
    struck: bool,
    /// A field of a form, or what stands for something that cannot be shown.
    unsure: bool,
    preformatted: bool,
    /// A program put it under the mail; what people write into it by mistake is looked for at the end.
    signature: bool,
    depth: usize,
    /// It is marked as a quote, and people may write in it all the same.
    perhaps: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they say independent things of where the reading stands")]
struct Page {
    open: Vec<Inside>,
    rules: Vec<Rule>,
    lines: Vec<Line>,
    line: String,
    /// Some of the line stands in what may be a quote.
    perhaps: bool,
    /// A blank is due before the next text.
    blank: bool,
    struck: bool,
    /// What stands in the signatures that a program marked.
    signature: String,
    /// Everything from here on is quoted.
    rest_quoted: bool,
    too_deep: bool,
}

impl Page {
    fn inside(&self) -> Inside {
        self.open.last().cloned().unwrap_or(Inside {
            tag: String::new(),
            hidden: false,
            no_size: false,
            colour: Paint::Solid([0; 3]),
            ground: Some(WHITE),
            struck: false,
            unsure: false,
            preformatted: false,
            signature: false,
            depth: 0,
            perhaps: false,
        })
    }

    fn depth(&self) -> usize {
        self.open.last().map_or(0, |inside| inside.depth) + usize::from(self.rest_quoted)
    }

    fn open(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if is_block(name) && self.open.last().is_some_and(|last| last.tag == "p") {
            self.close("p");
        }
        if matches!(name, "li" | "td" | "th" | "tr" | "option" | "dd" | "dt")
            && self.open.last().is_some_and(|last| last.tag == name)
        {
            self.close(name);
        }
        match name {
            "br" => return self.end_line(),
            "hr" => {
                self.break_line();
                self.rest_quoted |= ends_new_text(tag.attribute("id"));
                return;
            }
            "img" => return self.image(tag),
            "input" => return self.input(tag),
            "area" | "base" | "col" | "embed" | "link" | "meta" | "param" | "source" | "track" | "wbr" => {
                return;
            }
            _ => {}
        }
        if is_block(name) {
            self.break_line();
        }
        let (class, id) = (tag.attribute("class"), tag.attribute("id"));
        if ends_new_text(id) {
            self.rest_quoted = true;
        }
        if self.open.len() >= DEEPEST {
            self.too_deep = true;
            return;
        }
        let mut inside = self.inside();
        name.clone_into(&mut inside.tag);
        // Of rules that contradict one another the one that shows holds, and the element's own word before all.
        let mut none: Option<bool> = None;
        for rule in self.rules.iter().filter(|rule| rule.fits(name, class, id)) {
            inside.wear(&rule.style);
            none = rule.style.display_none.map(|one| one && none.unwrap_or(true)).or(none);
        }
        let own = declarations(tag.attribute("style"));
        inside.hidden |= own.display_none.or(none).unwrap_or(false)
            || tag.has("hidden")
            || (name == "dialog" && !tag.has("open"))
            || matches!(name, "head" | "template" | "datalist" | "xml");
        inside.unsure |= matches!(
            name,
            "select" | "button" | "output" | "meter" | "progress" | "object" | "audio" | "video" | "canvas" | "applet"
        );
        inside.hidden |= is_signature(class, tag.attribute("data-smartmail"));
        inside.signature |= is_open_signature(id);
        inside.struck |= matches!(name, "s" | "strike" | "del");
        inside.preformatted |= name == "pre" || tag.attribute("style").replace(' ', "").contains("white-space:pre");
        if name == "font" || name == "body" {
            let named = if name == "font" { tag.attribute("color") } else { tag.attribute("text") };
            if let Some(seen) = colour(named) {
                inside.colour = seen;
            }
            inside.no_size |= tag.attribute("size") == "0";
        }
        inside.ground = ground(tag.attribute("bgcolor")).unwrap_or(inside.ground);
        if name == "a" && own.colour.is_none() {
            inside.colour = Paint::Solid([0, 0, 238]);
        }
        inside.wear(&own);
        // What a person indents in a mail program is a quote without its border.
        let quotes =
            name == "blockquote" && (!own.borderless || class.contains("quote") || tag.attribute("type") == "cite");
        if quotes || is_quote(class, id) {
            inside.depth += 1;
        }
        inside.perhaps |= matches!(name, "blockquote" | "q" | "cite") || may_quote(class) || may_quote(id);
        self.open.push(inside);
        if matches!(name, "option" | "optgroup") {
            self.unsure(tag.attribute("label"));
        }
        if name == "li" {
            self.put("- ");
            self.blank = false;
        }
    }

    fn close(&mut self, name: &str) {
        if name == "br" || name == "p" && !self.open.iter().any(|open| open.tag == "p") {
            return self.break_line();
        }
        let Some(at) = self.open.iter().rposition(|open| open.tag == name) else { return };
        // A stray end does not close what stands around a table's cell or a quote.
        let barrier = self.open[at + 1..].iter().any(|open| matches!(open.tag.as_str(), "td" | "th" | "blockquote"));
        if barrier && !matches!(name, "table" | "tr" | "tbody" | "td" | "th" | "blockquote" | "body" | "html" | "div") {
            return;
        }
        let blocks = self.open[at..].iter().any(|open| is_block(&open.tag));
        if blocks {
            self.break_line();
        }
        self.mark_struck(false);
        self.open.truncate(at);
        if matches!(name, "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6") {
            self.blank_line();
        }
    }

    fn image(&mut self, tag: &Tag) {
        let alt = tag.attribute("alt");
        // Emoji come as pictures; any other picture says nothing.
        let emoji = !alt.is_empty()
            && alt.chars().count() <= 8
            && alt.chars().all(|letter| !letter.is_ascii() && !letter.is_alphabetic());
        if emoji {
            self.text(alt);
        }
    }

    /// What some programs show and some do not is text that makes no plain yes.
    fn unsure(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.text(&format!("\u{fffd}{text}"));
        }
    }

    /// A field of a form: what it holds is seen, and nobody wrote it as an answer.
    fn input(&mut self, tag: &Tag) {
        let kind = tag.attribute("type").trim().to_ascii_lowercase();
        match kind.as_str() {
            "hidden" => {}
            "checkbox" | "radio" => self.text("\u{fffd}"),
            _ => ["value", "placeholder", "alt"].iter().for_each(|name| self.unsure(tag.attribute(name))),
        }
    }

    fn text(&mut self, text: &str) {
        let inside = self.inside();
        if text.is_empty() || inside.hidden || inside.no_size || inside.vanishes() {
            return;
        }
        let mut text = decoded(text);
        if inside.unsure && !text.trim().is_empty() {
            text.insert(0, '\u{fffd}');
        }
        if inside.signature {
            if self.depth() == 0 {
                self.signature.push_str(&text);
            }
            return;
        }
        if inside.preformatted {
            for (number, line) in text.split('\n').enumerate() {
                if number > 0 {
                    self.end_line();
                }
                self.mark_struck(inside.struck && !line.is_empty());
                self.put(line);
            }
            return;
        }
        let is_blank = |letter: char| matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}');
        self.blank |= text.starts_with(is_blank);
        for word in text.split(is_blank).filter(|word| !word.is_empty()) {
            self.mark_struck(inside.struck);
            if self.blank && !self.line.is_empty() {
                self.line.push(' ');
            }
            self.put(word);
            self.blank = true;
        }
        self.blank = text.ends_with(is_blank) || (self.blank && text.trim_matches(is_blank).is_empty());
    }

    fn put(&mut self, text: &str) {
        let (hidden, perhaps) = self.open.last().map_or((false, false), |inside| (inside.hidden, inside.perhaps));
        if !hidden {
            self.line.push_str(text);
            self.perhaps |= perhaps;
        }
    }

    fn mark_struck(&mut self, struck: bool) {
        if self.struck != struck {
            self.struck = struck;
            self.line.push_str("~~");
        }
    }

    /// Ends the line if there is something in it.
    fn break_line(&mut self) {
        self.blank = false;
        self.mark_struck(false);
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        self.blank = false;
        let text = std::mem::take(&mut self.line);
        let line = marked(&text);
        let perhaps = std::mem::take(&mut self.perhaps);
        self.lines.push(Line { depth: line.depth + self.depth(), text: line.text, perhaps });
    }

    fn blank_line(&mut self) {
        let depth = self.depth();
        if self.lines.last().is_some_and(|line| !line.text.is_empty()) {
            self.lines.push(Line { depth, ..Line::default() });
        }
    }

    fn finish(mut self) -> Vec<Line> {
        self.break_line();
        let signature: Vec<&str> = self.signature.lines().collect();
        if takes_back(&signature) {
            self.lines.push(Line { text: signature.join(" "), ..Line::default() });
        }
        if self.too_deep {
            self.lines.push(Line { text: "\u{fffd}".into(), ..Line::default() });
        }
        self.lines
    }
}

impl Inside {
    /// Whether its text has the colour of its ground.
    fn vanishes(&self) -> bool {
        match self.colour {
            Paint::Clear => true,
            Paint::Solid(colour) => self.ground.is_some_and(|ground| alike(colour, ground)),
        }
    }

    fn wear(&mut self, style: &Style) {
        self.hidden |= style.hidden;
        self.no_size = style.no_size.unwrap_or(self.no_size);
        self.colour = style.colour.unwrap_or(self.colour);
        self.ground = style.background.unwrap_or(self.ground);
        self.struck |= style.struck;
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "blockquote"
            | "body"
            | "center"
            | "dd"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "html"
            | "li"
            | "main"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "table"
            | "tbody"
            | "td"
            | "th"
            | "tr"
            | "ul"
    )
}

/// The marks that Outlook puts between what is new and what is quoted.
fn ends_new_text(id: &str) -> bool {
    matches!(id, "divRplyFwdMsg" | "appendonsend" | "stopSpelling" | "x_divRplyFwdMsg" | "x_appendonsend")
}

fn is_quote(class: &str, id: &str) -> bool {
    const CLASSES: &[&str] = &[
        "gmail_attr",
        "moz-cite-prefix",
        "yahoo_quoted",
        "protonmail_quote",
        "tutanota_quote",
        "ms-outlook-mobile-reference-message",
        "OutlookMessageHeader",
        "iwcQuote",
        "airmail_on",
        "moz-forward-container",
    ];
    const IDS: &[&str] = &[
        "mail-editor-reference-message-container",
        "OLK_SRC_BODY_SECTION",
        "isReplyContent",
        "isForwardContent",
        "reply-intro",
    ];
    class.split_whitespace().any(|class| CLASSES.contains(&class))
        || IDS.contains(&id)
        || id.contains("yahoo_quoted")
        || class.contains("yahoo_quoted")
}

/// Whether a name says that a quote stands there. Gmail has the quote and what is written below it in one such element.
fn may_quote(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["quot", "cite", "citation"].iter().any(|word| name.contains(word))
}

/// Whether a program marked it as the signature that it put there, where nobody types.
fn is_signature(class: &str, mark: &str) -> bool {
    const CLASSES: &[&str] = &[
        "gmail_signature",
        "gmail_signature_prefix",
        "moz-signature",
        "protonmail_signature_block",
        "AppleMailSignature",
    ];
    class.split_whitespace().any(|class| CLASSES.contains(&class)) || mark == "gmail_signature"
}

/// The same where the person's cursor may have stood in it, as in Outlook.
fn is_open_signature(id: &str) -> bool {
    matches!(
        id,
        "Signature" | "ms-outlook-mobile-signature" | "AppleMailSignature" | "ms-outlook-mobile-body-separator-line"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote::split;

    fn new_text(html: &str) -> String {
        split(visible(html)).new.trim().to_owned()
    }

    #[test]
    fn hidden_text_is_left_out() {
        for html in [
            "<span style='display:none'>not</span>approve",
            "<div hidden>x</div>approve",
            "<div style=\"color:#fff\">deny</div><p>approve</p>",
            "<font color=white>deny</font>approve",
            "<div style='font-size:0'>a<b>b</b></div>approve",
            "<style>.pre{display:none}</style><div class='pre'>x</div>approve",
            "<!-- deny -->approve<script>deny</script>",
            "<div style='background:#000'><span style='color:black'>x</span></div>approve",
            "<head><title>deny</title></head><body>approve</body>",
            "<div style='max-height:0;overflow:hidden'>x</div>approve",
        ] {
            assert_eq!(new_text(html), "approve", "{html}");
        }
    }

    #[test]
    fn what_is_seen_stays() {
        assert_eq!(new_text("do <span style='font-size:0.9em'>not</span> approve"), "do not approve");
        assert_eq!(new_text("<body bgcolor='#000' text='white'>do not approve"), "do not approve");
        assert_eq!(new_text("<b>a</b>pprove"), "approve");
        assert_eq!(new_text("<s>approve</s> deny"), "~~approve~~ deny");
        assert_eq!(new_text("a &lt;b&gt; &amp; c&nbsp;d"), "a <b> & c\u{a0}d");
        assert_eq!(new_text("<img alt='👍' src='x'> <img alt='approve'>"), "👍");
    }

    #[test]
    fn quotes_of_many_programs_are_cut() {
        for html in [
            "approve<blockquote type='cite'>deny</blockquote>",
            "approve<div class='gmail_quote'><div class='gmail_attr'>On x wrote:</div><blockquote class='gmail_quote'>no</blockquote></div>",
            "approve<div id='appendonsend'></div><hr><div id='divRplyFwdMsg'>From: A</div><div>no</div>",
            "<p>approve</p><div><b>From:</b> A<br><b>Sent:</b> b<br><b>To:</b> c</div><p>no</p>",
            "approve<div class='yahoo_quoted'>no</div>",
            "<div>approve</div><div id='ms-outlook-mobile-signature'>Get Outlook</div><div id='mail-editor-reference-message-container'>no</div>",
        ] {
            assert_eq!(new_text(html), "approve", "{html}");
        }
        assert_eq!(
            new_text(
                "<div>approve</div><blockquote style='margin:0 0 0 40px;border:none;padding:0px'>staging only</blockquote>"
            ),
            "approve\nstaging only"
        );
        assert_eq!(
            new_text(
                "<div class='gmail_quote'><blockquote class='gmail_quote'>q</blockquote><div>deny</div><blockquote class='gmail_quote'>q</blockquote></div>"
            ),
            "deny"
        );
    }

    #[test]
    fn broken_markup_ends() {
        for html in ["<", "<a", "<a b='", "&", "&#;", "<!--", "</", "<p <p", "<日本", "<a é=é>x"] {
            visible(html);
        }
        let deep = "<div>".repeat(100_000);
        assert!(new_text(&deep).contains('\u{fffd}'));
    }
}
