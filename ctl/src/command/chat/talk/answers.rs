//! What owd answers a chat, and the items that it waits for.

use ow_protocol::{AnswerRequest, ItemView, SentMessage, SessionView};
use serde_json::Value;

use super::card::Card;
use super::conversation::Conversation;
use super::exchange::{Ask, Effect, Told};
use crate::failure::Failure;

impl Conversation {
    /// Fetches the items that it waits for, and drops the cards that nobody waits for any more.
    pub(super) fn look_at_items(&mut self) -> Vec<Effect> {
        let wanted = self.session.items.clone();
        if self.session.state == "parked" || !self.is_in_turn() {
            self.cards.retain(|card| wanted.contains(&card.item.id));
            self.aside.retain(|item| wanted.contains(item));
        }
        let mut effects = vec![];
        for item in wanted {
            if self.cards.iter().all(|card| card.item.id != item) && !self.fetching.contains(&item) {
                self.fetching.push(item.clone());
                effects.push(Effect::Ask(Ask::Item(item)));
            }
        }
        effects
    }

    pub(super) fn told(&mut self, told: Told) -> Vec<Effect> {
        match told {
            Told::Said(sent) => {
                let SentMessage { session, .. } = *sent;
                if session.state == "parked" {
                    self.note("It waits for your answer first; what you said is heard after that.");
                }
            }
            Told::Item(item) => return self.open(*item),
            Told::Answered | Told::Interrupting => {}
            Told::Session(session) => {
                // How it stands is the stream's to tell, as this answer may be older, and that it changed is an entry.
                let SessionView { mode, model, .. } = *session;
                (self.session.mode, self.session.model) = (mode, model);
            }
            Told::Compacting => self.note("It sums up what was said."),
            Told::Attached(attachment) => self.attachments.push(attachment),
            Told::Candidates { start, candidates } => self.offer(start, &candidates),
            Told::Edited { item, arguments } => return self.edited(item, arguments),
            Told::NotEdited { item, why } => {
                self.ask_again(&item);
                self.error(&why.message, why.hint.as_deref());
            }
            Told::Failed { asked, why } => self.failed(asked, &why),
            Told::Pending(_) | Told::Tools(_) | Told::Cost { .. } | Told::Chats(_) => self.list(told),
        }
        vec![]
    }

    fn open(&mut self, item: ItemView) -> Vec<Effect> {
        self.fetching.retain(|fetched| *fetched != item.id);
        let is_known = self.cards.iter().any(|card| card.item.id == item.id);
        if item.state != "pending" || is_known {
            return vec![];
        }
        self.cards.push(Card::new(item));
        vec![Effect::Bell]
    }

    /// Puts the card before the person that the keys are for, unless it stands there already: one at a time, as a key must
    /// not answer another question than the one above it.
    pub(super) fn show_card(&mut self) {
        self.shown.take_if(|shown| self.cards.iter().all(|card| card.item.id != *shown));
        let Some(card) = self.card() else { return };
        if self.shown.as_deref() == Some(card.item.id.as_str()) {
            return;
        }
        let (shown, rows) = (card.item.id.clone(), card.rows(self.columns));
        let open = self.cards.iter().filter(|card| !self.aside.contains(&card.item.id)).count();
        let others = open - 1 + self.fetching.len();
        self.shown = Some(shown);
        self.gap();
        self.said.extend(rows);
        if others > 0 {
            self.note(&format!("After this, {others} more of what it asks."));
        }
    }

    fn edited(&mut self, item: String, arguments: Option<Value>) -> Vec<Effect> {
        let Some(arguments) = arguments else {
            self.ask_again(&item);
            self.note("The arguments are as they were; nothing was answered.");
            return vec![];
        };
        let Some(card) = self.cards.iter_mut().find(|card| card.item.id == item) else { return vec![] };
        card.sent();
        vec![Effect::Ask(Ask::Answer { item, answer: AnswerRequest::Edit { arguments } })]
    }

    fn ask_again(&mut self, item: &str) {
        if let Some(card) = self.cards.iter_mut().find(|card| card.item.id == item) {
            card.again();
        }
    }

    fn failed(&mut self, asked: Ask, why: &Failure) {
        match asked {
            Ask::Say { text, attachments } => {
                if let Some(at) = self.unheard.iter().position(|unheard| *unheard == text) {
                    self.unheard.remove(at);
                }
                self.attachments = attachments;
                // So that it need not be typed again.
                if self.prompt.is_empty() {
                    self.prompt.insert(&text);
                }
            }
            Ask::Answer { item, .. } => self.ask_again(&item),
            Ask::Item(item) => self.fetching.retain(|fetched| *fetched != item),
            Ask::Interrupt => self.no_longer_stopping(),
            _ => {}
        }
        self.error(&why.message, why.hint.as_deref());
    }
}
