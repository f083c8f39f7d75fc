//! Who the users of this machine are to owd.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ow_config::Config;
use ow_mail::{Dns, MailSettings};
use ow_model::{Item, Person};
use ow_reply::Phrases;

/// The names of the machine's accounts, read again when their file is another one.
#[derive(Debug)]
pub(crate) struct Accounts {
    file: PathBuf,
    read: Mutex<(Option<Version>, HashMap<u32, String>)>,
}

/// What changes when a file does: device, inode, length and the time of its last change.
type Version = (u64, u64, u64, i64, i64);

impl Accounts {
    pub(crate) fn of_machine() -> Self {
        Self::of(Path::new("/etc/passwd"))
    }

    fn of(file: &Path) -> Self {
        Self { file: file.into(), read: Mutex::default() }
    }

    pub(crate) fn name(&self, uid: u32) -> Option<String> {
        let found = fs::metadata(&self.file).ok()?;
        let version = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != Some(version) {
            *read = (Some(version), names(&fs::read_to_string(&self.file).ok()?));
        }
        read.1.get(&uid).cloned()
    }
}

/// The first name of each uid.
fn names(accounts: &str) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in accounts.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(_), Some(Ok(uid))) = (fields.next(), fields.next(), fields.next().map(str::parse)) {
            names.entry(uid).or_insert_with(|| name.to_owned());
        }
    }
    names
}

/// The person behind a user id; none: not entitled to anything.
///
/// Without configured people the account that owd runs under is the one person, and root is too.
pub(crate) fn person_of(config: &Config, accounts: &Accounts, own_uid: u32, uid: u32) -> Option<Person> {
    let user = accounts.name(uid);
    if config.people.is_empty() {
        let entitled = uid == own_uid || uid == 0;
        return entitled.then(|| Person(user.unwrap_or_else(|| format!("uid {uid}"))));
    }
    config.person_of(uid, user.as_deref()).map(|(name, _)| Person(name.to_owned()))
}

/// Whether this person may answer: theirs are the inboxes that the configuration gives them.
pub(crate) fn may_answer(config: &Config, person: &Person, item: &Item) -> bool {
    match config.people.get(&person.0) {
        Some(configured) => item.inboxes().any(|inbox| configured.inboxes.contains(&config.present_inbox(inbox))),
        None => config.people.is_empty(),
    }
}

/// Whose mail counts, and by which words.
pub(crate) fn mail_settings(config: &Config) -> MailSettings {
    let people = config.people.iter().map(|(name, person)| (Person(name.clone()), person.mail.clone())).collect();
    // The configuration holds no phrase that cannot be used.
    let phrases = Arc::new(Phrases::with(&config.inbox.approve_words, &config.inbox.deny_words).unwrap_or_default());
    let dns = match (config.mail.signatures, config.mail.dns) {
        (false, _) => Dns::Off,
        (true, None) => Dns::System,
        (true, Some(server)) => Dns::At(server),
    };
    MailSettings { relay: config.mail.authserv_id.clone(), dns, phrases, people }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_file_as_it_stands() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("passwd");
        fs::write(&file, "ada:x:1000:1000::/home/ada:/bin/sh\nbroken\nadmin:x:1000:0::/:/bin/sh\n").expect("written");
        let accounts = Accounts::of(&file);
        assert_eq!(accounts.name(1000).as_deref(), Some("ada"), "the first of an account's names");
        assert_eq!(accounts.name(1), None);
        fs::write(&file, "grace:x:1000:1000::/home/grace:/bin/sh\n").expect("written");
        assert_eq!(accounts.name(1000).as_deref(), Some("grace"));
        fs::remove_file(&file).expect("removed");
        assert_eq!(accounts.name(1000), None);
    }
}
