//! A file of secrets that says nothing without the key that lies elsewhere.
//!
//! It guards what is copied: a backup, a synchronised or a stolen folder. Who can read both files has the secrets. No
//! person is needed at the start of the machine.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::SecretError;
use crate::file::replace;
use crate::source::{Privacy, read_private};

/// Names the format; what follows is the nonce and the sealed text.
const HEAD: &[u8] = b"owd sealed secrets 2\n";
/// Only test versions of owd wrote it, with a nonce of another length.
const FIRST_HEAD: &[u8] = b"owd sealed secrets 1\n";
const KEY_LENGTH: usize = 32;

/// A sealed file and its key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sealed {
    pub file: PathBuf,
    /// 64 hexadecimal digits, in a file that only its owner may read; made when a first secret is kept.
    pub key_file: PathBuf,
}

impl Sealed {
    /// The text in it; empty if there is no file yet.
    pub(crate) fn read(&self) -> Result<Zeroizing<Vec<u8>>, SecretError> {
        let sealed = match read_private(&self.file, Privacy::OwnerOnly) {
            Ok(sealed) => sealed,
            Err(SecretError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Zeroizing::default());
            }
            Err(error) => return Err(error),
        };
        let key = self.key()?;
        let broken = |why: &str| SecretError::Sealed { path: self.file.clone(), why: why.into() };
        if sealed.starts_with(FIRST_HEAD) {
            return Err(broken("a test version of owd wrote it; remove it and set its secrets again"));
        }
        let body = sealed.strip_prefix(HEAD).ok_or_else(|| broken("it does not begin as a sealed file does"))?;
        let (nonce, text) = body.split_first_chunk().ok_or_else(|| broken("it is cut off"))?;
        // Opened where it lies: the text is the front of the buffer afterwards, the tag behind it is cut off.
        let mut text = Zeroizing::new(text.to_vec());
        let opened = cipher(&key).open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::empty(), &mut text);
        let length = opened
            .map_err(|_| broken(&format!("it was changed, or {} is not its key", self.key_file.display())))?
            .len();
        text.truncate(length);
        Ok(text)
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), SecretError> {
        let key = match self.key() {
            Err(SecretError::Read { source, .. })
                if source.kind() == io::ErrorKind::NotFound && !self.file.exists() =>
            {
                self.make_key()?
            }
            key => key?,
        };
        let failed = |source: io::Error| SecretError::Write { path: self.file.clone(), source };
        // By chance: a file is written when a person sets a secret, so 96 bits never meet twice under one key.
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let mut sealed = Zeroizing::new(text.as_bytes().to_vec());
        let tag = cipher(&key)
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
            .map_err(|_| failed(io::Error::other("it is too long to be sealed")))?;
        replace(&self.file, &[HEAD, &nonce, &sealed, tag.as_ref()].concat()).map_err(failed)
    }

    fn key(&self) -> Result<Zeroizing<[u8; KEY_LENGTH]>, SecretError> {
        let text = read_private(&self.key_file, Privacy::OwnerOnly)?;
        let wrong = || SecretError::Sealed {
            path: self.key_file.clone(),
            why: format!("a key is {} hexadecimal digits", KEY_LENGTH * 2),
        };
        let digits = std::str::from_utf8(&text).map_err(|_| wrong())?.trim();
        if digits.len() != KEY_LENGTH * 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut key = Zeroizing::new([0; KEY_LENGTH]);
        for (byte, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(key)
    }

    fn make_key(&self) -> Result<Zeroizing<[u8; KEY_LENGTH]>, SecretError> {
        let failed = |source: io::Error| SecretError::Write { path: self.key_file.clone(), source };
        let mut key = Zeroizing::new([0; KEY_LENGTH]);
        getrandom::fill(key.as_mut_slice()).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let mut text = Zeroizing::new(String::with_capacity(KEY_LENGTH * 2 + 1));
        for byte in key.iter() {
            use std::fmt::Write as _;
            write!(text, "{byte:02x}").expect("a String takes all");
        }
        text.push('\n');
        let made = || -> io::Result<()> {
            let folder = self.key_file.parent().unwrap_or_else(|| Path::new("/"));
            std::fs::create_dir_all(folder)?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&self.key_file)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            File::open(folder)?.sync_all()
        };
        made().map_err(failed)?;
        Ok(key)
    }
}

fn cipher(key: &[u8; KEY_LENGTH]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("the key has the length of the algorithm's"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{SecretFile, SecretName, SecretValue, Secrets, Sources};

    fn place() -> (tempfile::TempDir, Sealed) {
        let folder = tempfile::tempdir().expect("a folder");
        let sealed =
            Sealed { file: folder.path().join("a/secrets.sealed"), key_file: folder.path().join("b/seal.key") };
        (folder, sealed)
    }

    fn name() -> SecretName {
        "token".parse().expect("a name")
    }

    fn load(sealed: &Sealed) -> Result<Option<String>, SecretError> {
        let secrets = Secrets::load(&Sources { sealed: Some(sealed.clone()), ..Sources::default() })?;
        Ok(secrets.value(&name()).map(|value| value.expose().to_owned()))
    }

    #[test]
    fn a_sealed_secret_is_read_back_with_its_key_alone() {
        let (_folder, sealed) = place();
        assert_eq!(load(&sealed).expect("no file is no fault"), None);
        let file = SecretFile::Sealed(sealed.clone());
        file.set(&name(), &SecretValue::new("s3cr3t-value".into())).expect("set");
        assert_eq!(load(&sealed).expect("read").as_deref(), Some("s3cr3t-value"));
        let bytes = fs::read(&sealed.file).expect("there");
        assert!(!bytes.windows(6).any(|part| part == b"s3cr3t" || part == b"token "));
        for path in [&sealed.file, &sealed.key_file] {
            assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        }
        assert!(file.remove(&name()).expect("removed"));
        assert_eq!(load(&sealed).expect("read"), None);
    }

    #[test]
    fn a_changed_file_and_a_foreign_or_missing_key_are_told_apart_from_none() {
        let (_folder, sealed) = place();
        let file = SecretFile::Sealed(sealed.clone());
        file.set(&name(), &SecretValue::new("s3cr3t-value".into())).expect("set");
        let good = fs::read(&sealed.file).expect("there");
        let mut bad = good.clone();
        *bad.last_mut().expect("not empty") ^= 1;
        fs::write(&sealed.file, &bad).expect("changed");
        assert!(load(&sealed).unwrap_err().to_string().contains("it was changed"));
        fs::write(&sealed.file, &good).expect("as it was");
        let key = fs::read_to_string(&sealed.key_file).expect("there");
        fs::write(&sealed.key_file, "0".repeat(64)).expect("changed");
        assert!(load(&sealed).unwrap_err().to_string().contains("is not its key"));
        fs::write(&sealed.key_file, &key[..20]).expect("cut");
        assert!(load(&sealed).unwrap_err().to_string().contains("64 hexadecimal digits"));
        fs::remove_file(&sealed.key_file).expect("gone");
        assert!(matches!(load(&sealed), Err(SecretError::Read { .. })));
        let anew = file.set(&name(), &SecretValue::new("other-value".into()));
        assert!(anew.is_err(), "a new key would lose what is in the file");
        fs::write(&sealed.key_file, &key).expect("as it was");
        fs::set_permissions(&sealed.key_file, fs::Permissions::from_mode(0o640)).expect("open");
        assert!(matches!(load(&sealed), Err(SecretError::Mode { .. })));
    }

    #[test]
    fn a_file_of_the_first_format_is_told_from_a_broken_one() {
        let (_folder, sealed) = place();
        let file = SecretFile::Sealed(sealed.clone());
        file.set(&name(), &SecretValue::new("s3cr3t-value".into())).expect("set");
        let first = [FIRST_HEAD, &[7; 60]].concat();
        fs::write(&sealed.file, &first).expect("written");
        let error = load(&sealed).unwrap_err().to_string();
        assert!(error.contains("set its secrets again") && error.contains("secrets.sealed"), "{error}");
        assert!(file.set(&name(), &SecretValue::new("other-value".into())).is_err());
        assert_eq!(fs::read(&sealed.file).expect("there"), first, "nothing is written over it");
    }
}
