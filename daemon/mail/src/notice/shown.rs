use jiff::Timestamp;
use ow_inbox::wording::{self, Part};
use ow_model::{Item, Occasion, escape};

use crate::notice::Letter;
use crate::notice::choices::{self, Shown};
use crate::notice::render::Page;

/// A mail program cuts off what is longer, some without a word, so an item that would make more HTML is cut by us.
const WHOLE: usize = 64 * 1024;

/// Letters of each text that are shown of an item that is cut.
const CUT: usize = 2_000;

/// Texts of an item that are shown of one that is cut.
const CUT_TEXTS: usize = 9;

/// The same beside others; what is longer stands alone but for letters that take up far more room here.
const IN_DIGEST: usize = 16 * 1024;

/// Whether every mail that tells of this item shows all that it asks. One of which some do not is not approved by mail.
#[must_use]
pub fn fits_in_a_mail(item: &Item) -> bool {
    whole(item).as_html().len() <= if item.stands_alone() { WHOLE } else { IN_DIGEST }
}

/// The item and what may be answered.
pub(crate) fn item(page: &mut Page, item: &Item, news: Occasion, letter: &Letter<'_>) {
    item_within(page, item, news, letter, WHOLE);
}

/// The same beside others.
pub(crate) fn in_digest(page: &mut Page, item: &Item, news: Occasion, letter: &Letter<'_>) {
    item_within(page, item, news, letter, IN_DIGEST);
}

fn item_within(page: &mut Page, item: &Item, news: Occasion, letter: &Letter<'_>, most: usize) {
    let when = |at: Timestamp| at.to_zoned(letter.zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string();
    page.heading(format!("{}: {}", wording::heading(&item.kind), wording::title(item)));
    if let Some(outcome) = wording::outcome(item, &when) {
        page.text(outcome);
        page.text(item.id.token());
        return;
    }
    if news == Occasion::HandedOn {
        page.text(wording::handed_on(item));
        page.text(item.id.token());
        return;
    }
    if let Some(why) = wording::occasion(news) {
        page.text(why);
    }
    let mut pairs = vec![];
    if let Some(task) = &item.task {
        pairs.push(("task", escape::line(task.as_str()).into_owned()));
    }
    pairs.push(("asked", when(item.created_at)));
    if let Some(at) = item.expires_at {
        pairs.push(("expires", format!("{}; then it counts as denied", when(at))));
    }
    page.pairs(pairs);
    let asked = whole(item);
    let shown = if asked.as_html().len() <= most { Shown::Whole } else { Shown::Cut };
    page.append(if shown == Shown::Whole { asked } else { cut(item) });
    page.text(choices::in_words(item, shown));
    page.links(choices::links(item, shown, &letter.from.email));
    page.text(item.id.token());
}

/// All that is asked.
fn whole(item: &Item) -> Page {
    page(wording::asked(item))
}

fn cut(item: &Item) -> Page {
    page(wording::shortened(wording::asked(item), CUT_TEXTS, CUT))
}

fn page(parts: Vec<Part>) -> Page {
    let mut page = Page::default();
    for part in parts {
        match part {
            Part::Facts(facts) => page.pairs(facts),
            Part::Text(text) => page.text(text),
            Part::Code(text) => page.code(text),
        }
    }
    page
}
