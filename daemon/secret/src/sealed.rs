//! A file of secrets that says nothing without the key that lies elsewhere.
//!
//! It guards what is copied: a backup, a synchronised or a stolen folder. Who can read both files has the secrets. No
//! person is needed at the start of the machine.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::SecretError;
use crate::file::replace;
use crate::source::{Privacy, read_private};

/// Names the format; what follows is the nonce and the sealed text.
const HEAD: &[u8] = b"owd sealed secrets 1\n";
const KEY_LENGTH: usize = 32;
const NONCE_LENGTH: usize = 24;

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
        let body = sealed.strip_prefix(HEAD).ok_or_else(|| broken("it does not begin as a sealed file does"))?;
        let (nonce, text) = body.split_at_checked(NONCE_LENGTH).ok_or_else(|| broken("it is cut off"))?;
        let text = cipher(&key).decrypt(XNonce::from_slice(nonce), text);
        text.map(Zeroizing::new)
            .map_err(|_| broken(&format!("it was changed, or {} is not its key", self.key_file.display())))
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
        let mut nonce = [0; NONCE_LENGTH];
        getrandom::fill(&mut nonce).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let sealed = cipher(&key)
            .encrypt(XNonce::from_slice(&nonce), text.as_bytes())
            .map_err(|_| failed(io::Error::other("it is too long to be sealed")))?;
        replace(&self.file, &[HEAD, &nonce, &sealed].concat()).map_err(failed)
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

fn cipher(key: &[u8; KEY_LENGTH]) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(Key::from_slice(key))
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
}
