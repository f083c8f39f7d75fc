//! Certificates for servers on loopback, made by `openssl` for one test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// An issuer that nobody trusts by itself, and the certificate of `localhost` and `127.0.0.1` that it issued.
#[derive(Debug)]
pub struct Certificates {
    dir: TempDir,
}

impl Certificates {
    /// None where there is no `openssl`; then the test says so and is skipped.
    ///
    /// # Panics
    ///
    /// When it does not make them.
    #[must_use]
    pub fn make() -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("certificates").tempdir().expect("a folder");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("seen by others");
        fs::write(dir.path().join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("a file");
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let own = ["-x509", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Issuer of a test"];
        let made = openssl(
            dir.path(),
            &[&["req"], &key[..], &own[..], &["-addext", "keyUsage=critical,keyCertSign"]].concat(),
        );
        if !made {
            println!("skipped: no openssl");
            return None;
        }
        let asked = ["-keyout", "key.pem", "-out", "csr.pem", "-subj", "/CN=localhost"];
        assert!(openssl(dir.path(), &[&["req"], &key[..], &asked[..]].concat()), "a key");
        let issued = [
            "x509",
            "-req",
            "-in",
            "csr.pem",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            "cert.pem",
        ];
        assert!(openssl(dir.path(), &issued), "a certificate");
        for file in ["key.pem", "cert.pem", "ca.pem"] {
            fs::set_permissions(dir.path().join(file), fs::Permissions::from_mode(0o644)).expect("read by others");
        }
        Some(Self { dir })
    }

    /// The issuer's own certificate.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }
}

fn openssl(dir: &Path, args: &[&str]) -> bool {
    let ran = Command::new("openssl").current_dir(dir).args(args).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}
