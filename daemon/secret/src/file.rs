//! The file of secrets, changed one line at a time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use toml::de::DeTable;
use zeroize::Zeroizing;

use crate::source::{Privacy, read_private, syntax};
use crate::{Sealed, SecretError, SecretName, SecretValue, Secrets};

/// Where secrets are kept that are set one by one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SecretFile {
    /// Only its owner may read it.
    Plain(PathBuf),
    Sealed(Sealed),
}

impl SecretFile {
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Plain(path) => path,
            Self::Sealed(sealed) => &sealed.file,
        }
    }

    /// Keeps a secret, in the place of one of the same name; makes the file if there is none. Everything else in it
    /// stays as it is.
    ///
    /// # Errors
    ///
    /// Whatever would keep the file from being read, too: nothing is written then.
    pub fn set(&self, name: &SecretName, value: &SecretValue) -> Result<(), SecretError> {
        let shown = format!("`{}`", self.path().display());
        // What could not be read back must not be written.
        Secrets::checked(name.clone(), value.expose(), shown)?;
        let line = Zeroizing::new(format!("{name} = {}", toml::Value::String(value.expose().to_owned())));
        let text = self.text()?;
        let mut changed = Zeroizing::new(without(self.path(), &text, name)?.unwrap_or_else(|| text.to_string()));
        if !changed.is_empty() && !changed.ends_with('\n') {
            changed.push('\n');
        }
        // No table can swallow it: values are strings.
        changed.push_str(&line);
        changed.push('\n');
        self.write(&changed)
    }

    /// Forgets a secret. False: it was not there.
    pub fn remove(&self, name: &SecretName) -> Result<bool, SecretError> {
        let text = self.text()?;
        match without(self.path(), &text, name)? {
            Some(rest) => self.write(&Zeroizing::new(rest)).map(|()| true),
            None => Ok(false),
        }
    }

    fn text(&self) -> Result<Zeroizing<String>, SecretError> {
        let bytes = match self {
            Self::Plain(path) => match read_private(path, Privacy::OwnerOnly) {
                Err(SecretError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    Zeroizing::default()
                }
                read => read?,
            },
            Self::Sealed(sealed) => sealed.read()?,
        };
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Zeroizing::new(text.to_owned())),
            Err(error) => Err(syntax(self.path(), &bytes, error.valid_up_to())),
        }
    }

    fn write(&self, text: &str) -> Result<(), SecretError> {
        match self {
            Self::Plain(path) => {
                replace(path, text.as_bytes()).map_err(|source| SecretError::Write { path: path.clone(), source })
            }
            Self::Sealed(sealed) => sealed.write(text),
        }
    }
}

/// The text without the lines of this name; none if it has none.
fn without(path: &Path, text: &str, name: &SecretName) -> Result<Option<String>, SecretError> {
    let table = DeTable::parse(text)
        .map_err(|error| syntax(path, text.as_bytes(), error.span().map_or(0, |span| span.start)))?;
    let named = table.get_ref().iter().find(|(key, _)| key.get_ref().parse::<SecretName>().as_ref() == Ok(name));
    let Some((key, value)) = named else { return Ok(None) };
    let start = text[..key.span().start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[value.span().end..].find('\n').map_or(text.len(), |at| value.span().end + at + 1);
    Ok(Some(format!("{}{}", &text[..start], &text[end..])))
}

/// Writes the whole file beside its place and moves it there, so that no crash leaves half of it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("/")))?;
    // Through a link, the file itself is replaced and the link stays.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let new = beside(&path);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Sources;

    fn name(text: &str) -> SecretName {
        text.parse().expect("a name")
    }

    fn value(text: &str) -> SecretValue {
        SecretValue::new(text.into())
    }

    fn plain(file: &Path) -> SecretFile {
        SecretFile::Plain(file.into())
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sub/secrets.toml");
        (folder, file)
    }

    fn read(file: &Path, wanted: &str) -> Option<String> {
        let secrets = Secrets::load(&Sources { file: Some(file.into()), ..Sources::default() }).expect("readable");
        secrets.value(&name(wanted)).map(|value| value.expose().to_owned())
    }

    #[test]
    fn what_was_set_is_read_back_whatever_it_holds() {
        let (_folder, file) = folder();
        for text in ["plain-value", "with \"quotes\" and \\", "two\nlines", "''''x''''", "\u{7f}\u{1}ctl", "ünïcode"]
        {
            plain(&file).set(&name("key"), &value(text)).expect("set");
            assert_eq!(read(&file, "key").as_deref(), Some(text));
        }
        assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn everything_else_in_the_file_stays() {
        let (_folder, file) = folder();
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        let text = "# mine\nfirst = 'one-value'\n\nMail-Password = \"\"\"\nlong\n\"\"\" # why\nlast = \"last-value\"";
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
        plain(&file).set(&name("mail_password"), &value("new-value")).expect("set");
        let now = fs::read_to_string(&file).expect("read");
        assert_eq!(now, "# mine\nfirst = 'one-value'\n\nlast = \"last-value\"\nmail_password = \"new-value\"\n");
        assert!(plain(&file).remove(&name("first")).expect("removed"));
        assert!(!plain(&file).remove(&name("first")).expect("nothing to remove"));
        assert_eq!((read(&file, "first"), read(&file, "last").as_deref()), (None, Some("last-value")));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_written_to() {
        let (_folder, file) = folder();
        plain(&file).set(&name("key"), &value("a-value")).expect("set");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
        let open = plain(&file).set(&name("other"), &value("b-value")).unwrap_err();
        assert!(open.to_string().contains("can be read by others"), "{open}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
        fs::write(&file, "key = \n").expect("written");
        assert!(matches!(plain(&file).remove(&name("key")), Err(SecretError::Syntax { line: 1, .. })));
        let short = plain(&file).set(&name("key"), &value("abc")).unwrap_err();
        assert!(matches!(short, SecretError::Short { .. }));
    }
}
