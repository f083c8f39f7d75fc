use std::fmt::Write as _;

/// What a mail shows, in its order; every text in it is safe to show already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
enum Block {
    Heading(String),
    Text(String),
    /// As it stands, line by line.
    Code(String),
    Pairs(Vec<(&'static str, String)>),
    /// What opens a mail that is written already.
    Links(Vec<Link>),
    Rule,
}

/// A mail that a person may send.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Link {
    pub(crate) label: String,
    /// Percent-encoded.
    pub(crate) address: String,
}

impl Page {
    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    pub(crate) fn code(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Code(text.into()));
    }

    pub(crate) fn pairs(&mut self, pairs: Vec<(&'static str, String)>) {
        self.blocks.push(Block::Pairs(pairs));
    }

    pub(crate) fn links(&mut self, links: Vec<Link>) {
        if !links.is_empty() {
            self.blocks.push(Block::Links(links));
        }
    }

    pub(crate) fn rule(&mut self) {
        self.blocks.push(Block::Rule);
    }

    pub(crate) fn append(&mut self, other: Page) {
        self.blocks.extend(other.blocks);
    }

    pub(crate) fn as_text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            match block {
                Block::Heading(line) | Block::Text(line) => lines(&mut text, "", line),
                Block::Code(code) => lines(&mut text, "  ", code),
                Block::Pairs(pairs) => {
                    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                    for (name, value) in pairs {
                        let _ = write!(text, "  {name:width$}  {value}\r\n");
                    }
                }
                Block::Links(links) => {
                    for Link { label, address } in links {
                        let _ = write!(text, "{label}:\r\n  <{address}>\r\n");
                    }
                }
                Block::Rule => text.push_str("________________________________________\r\n"),
            }
        }
        text
    }

    pub(crate) fn as_html(&self) -> String {
        let mut html = String::from(
            "<!DOCTYPE html>\r\n<html><head><meta charset=\"utf-8\"></head>\r\n<body style=\"font-family:sans-serif\">\r\n",
        );
        for block in &self.blocks {
            match block {
                Block::Heading(line) => {
                    let _ = write!(html, "<p><b>{}</b></p>\r\n", escaped(line));
                }
                Block::Text(text) => {
                    let _ = write!(html, "<p style=\"white-space:pre-wrap\">{}</p>\r\n", escaped(text));
                }
                Block::Code(code) => {
                    let _ = write!(html, "<pre style=\"white-space:pre-wrap\">{}</pre>\r\n", escaped(code));
                }
                Block::Pairs(pairs) => {
                    html.push_str("<table>\r\n");
                    for (name, value) in pairs {
                        let _ = write!(html, "<tr><td>{}</td><td>{}</td></tr>\r\n", escaped(name), escaped(value));
                    }
                    html.push_str("</table>\r\n");
                }
                Block::Links(links) => {
                    html.push_str("<p>\r\n");
                    for Link { label, address } in links {
                        let _ = write!(html, "<a href=\"{}\">{}</a><br>\r\n", escaped(address), escaped(label));
                    }
                    html.push_str("</p>\r\n");
                }
                Block::Rule => html.push_str("<hr>\r\n"),
            }
        }
        html.push_str("</body></html>\r\n");
        html
    }
}

fn lines(text: &mut String, indent: &str, block: &str) {
    for line in block.lines() {
        text.push_str(indent);
        text.push_str(line);
        text.push_str("\r\n");
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' => safe.push_str("\r\n"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Percent-encoded, all but letters, digits and what RFC 3986 leaves as it is.
pub(crate) fn encoded(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            safe.push(char::from(byte));
        } else {
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}
