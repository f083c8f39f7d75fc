//! Who the users of this machine are to owd.

use ow_config::Config;
use ow_mail::MailSettings;
use ow_model::{Item, Person};
use ow_reply::Phrases;

/// The person behind a user id; none: not entitled to anything.
///
/// Without configured people the account that owd runs under is the one person, and root is too.
pub(crate) fn person_of(config: &Config, own_uid: u32, uid: u32) -> Option<Person> {
    let user = account_name(uid);
    if config.people.is_empty() {
        let entitled = uid == own_uid || uid == 0;
        return entitled.then(|| Person(user.unwrap_or_else(|| format!("uid {uid}"))));
    }
    config.person_of(uid, user.as_deref()).map(|(name, _)| Person(name.to_owned()))
}

/// Whether this person may answer: theirs are the inboxes that the configuration gives them.
pub(crate) fn may_answer(config: &Config, person: &Person, _item: &Item) -> bool {
    match config.people.get(&person.0) {
        // Every item goes to the one inbox that there is until bindings come.
        Some(configured) => configured.inboxes.contains("default"),
        None => config.people.is_empty(),
    }
}

/// Whose mail counts, and by which words.
pub(crate) fn mail_settings(config: &Config) -> MailSettings {
    let people = config.people.iter().map(|(name, person)| (Person(name.clone()), person.mail.clone())).collect();
    // The configuration holds no phrase that cannot be used.
    let phrases = Phrases::with(&config.inbox.approve_words, &config.inbox.deny_words).unwrap_or_default();
    MailSettings { relay: config.mail.authserv_id.clone(), phrases, people }
}

fn account_name(uid: u32) -> Option<String> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    })
}
