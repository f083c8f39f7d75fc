use jiff::Timestamp;
use ow_model::{Attachment, BlobHash, Position};

use super::*;
use crate::wire::tests::{answered, result, said};
use crate::wire::{LimitField, Parameters, body};
use crate::{Capabilities, ModelTable, Preset, Request};

#[derive(Debug)]
struct Pixels;

impl Attachments for Pixels {
    fn bytes(&self, _: &Attachment) -> Option<Vec<u8>> {
        Some(b"pixels".to_vec())
    }

    fn text(&self, _: &Attachment) -> Option<String> {
        None
    }
}

fn sent(view: View) -> String {
    let settings = Preset::named("openai").expect("a preset").settings();
    let capabilities: Capabilities = ModelTable::shipped().capabilities("openai", "gpt-5");
    let parameters =
        Parameters { limit: LimitField::None, stream_options: false, effort: false, tool_choice: false, cache: false };
    let request = Request { attachments: Arc::new(Pixels), ..Request::new("gpt-5", view) };
    let bytes = body(&request, &Profile::new(&settings, &capabilities), &capabilities, parameters);
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn pictured(position: u32, count: usize) -> Message {
    let image = |index: usize| Attachment {
        name: format!("{position}-{index}.png"),
        media_type: "image/png".into(),
        bytes: 6,
        hash: BlobHash::of(b"pixels"),
    };
    Message::Tool {
        position: Position(position),
        text: "seen".into(),
        is_error: false,
        outside: false,
        images: (0..count).map(image).collect(),
        at: Timestamp::UNIX_EPOCH,
    }
}

#[test]
fn a_view_stays_as_it_was_taken() {
    let mut prompt: Prompt = [said("one")].into_iter().collect();
    let before = prompt.view();
    let text = sent(before.clone());
    prompt.push(said("two"));
    assert_eq!(sent(before.clone()), text);
    assert!(sent(prompt.view()).contains("two"));
    prompt.begin_at(1, Some("summary"));
    assert_eq!(sent(before), text);
}

#[test]
fn clones_that_go_different_ways_do_not_mix() {
    let mut one: Prompt = [said("both")].into_iter().collect();
    let mut other = one.clone();
    one.push(said("mine"));
    other.push(said("yours"));
    assert!(sent(one.view()).contains("mine") && !sent(one.view()).contains("yours"));
    assert!(sent(other.view()).contains("yours") && !sent(other.view()).contains("mine"));
}

#[test]
fn a_summary_stands_for_what_was_before_it() {
    let mut prompt: Prompt =
        [said("one"), answered("two", &[]), said("three"), answered("four", &[])].into_iter().collect();
    prompt.begin_at(2, Some("there was one and two"));
    let text = sent(prompt.view());
    assert!(text.contains(r#""content":"there was one and two\n\nthree""#) && !text.contains("\"one\""), "{text}");
    prompt.push(said("five"));
    assert_eq!(prompt.len(), 5);
    prompt.begin_at(4, Some("all that"));
    assert!(sent(prompt.view()).contains(r#"{"role":"user","content":"all that\n\nfive"}"#));
    // What was let go of does not come back; nothing is lost that is still there.
    prompt.begin_at(1, Some("other words"));
    assert!(sent(prompt.view()).contains(r#"{"role":"user","content":"other words\n\nfive"}"#));
    prompt.begin_at(99, None);
    assert_eq!((prompt.len(), prompt.view().messages().len()), (5, 0));
}

#[test]
fn of_tools_pictures_the_newest_five_stay() {
    let mut prompt = Prompt::new();
    prompt.push(said("look"));
    for position in 0..4 {
        prompt.push(answered("", &[(position, "see")]));
        prompt.push(pictured(position, 2));
        // Also when earlier requests had shown more of them.
        sent(prompt.view());
    }
    let text = sent(prompt.view());
    assert_eq!(text.matches("image_url\":{").count(), 5);
    for (name, is_shown) in [("0-0", false), ("0-1", false), ("1-0", false), ("1-1", true), ("3-1", true)] {
        assert_eq!(text.contains(&format!("`{name}.png` (image/png): shown before")), !is_shown, "{name}");
    }
    let whole: Prompt = prompt.view().messages().iter().map(|message| (**message).clone()).collect();
    assert_eq!(sent(whole.view()), text);
}

#[test]
fn size_counts_what_is_sent() {
    let mut prompt: Prompt = [said("12345"), answered("123", &[(0, "see")]), result(0, "1234")].into_iter().collect();
    assert_eq!(prompt.size(), 5 + 3 + 3 + r#"{"n":0}"#.len() + 4);
    prompt.begin_at(2, Some("12"));
    assert_eq!(prompt.size(), 2 + 4);
}
