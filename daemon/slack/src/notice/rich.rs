//! Rich text of Block Kit: its texts are shown as they are, so that nothing in them links, calls anybody or ends a block.

use serde_json::{Value, json};

/// Letters in one element; Slack publishes no limit, and takes this many in any block.
const PIECE: usize = 2_900;

/// Lines and blocks of code in the order of a message.
#[derive(Debug, Default)]
pub(crate) struct Rich {
    elements: Vec<(usize, Value)>,
}

impl Rich {
    pub(crate) fn bold(&mut self, text: &str) {
        self.section(text, &json!({ "bold": true }));
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.section(text, &json!({}));
    }

    fn section(&mut self, text: &str, style: &Value) {
        for piece in pieces(text) {
            let element = json!({ "type": "text", "text": format!("{piece}\n"), "style": style });
            let letters = piece.chars().count();
            self.elements.push((letters, json!({ "type": "rich_text_section", "elements": [element] })));
        }
    }

    pub(crate) fn code(&mut self, text: &str) {
        for piece in pieces(text) {
            let element = json!({ "type": "text", "text": piece });
            let letters = piece.chars().count();
            self.elements.push((letters, json!({ "type": "rich_text_preformatted", "elements": [element] })));
        }
    }

    /// As few blocks as hold it.
    pub(crate) fn blocks(self) -> Value {
        let mut blocks: Vec<Vec<Value>> = vec![];
        let mut letters = PIECE;
        for (more, element) in self.elements {
            if letters + more > PIECE || blocks.is_empty() {
                blocks.push(vec![]);
                letters = 0;
            }
            letters += more;
            if let Some(block) = blocks.last_mut() {
                block.push(element);
            }
        }
        blocks.into_iter().map(|elements| json!({ "type": "rich_text", "elements": elements })).collect()
    }
}

/// A text in pieces that an element holds; an empty text is none.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

/// At most so many letters, the last one saying that there are more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
