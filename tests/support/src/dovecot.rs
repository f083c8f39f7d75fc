//! A real IMAP server on loopback, with a home of its own: Dovecot, under an account without rights.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Certificates, until};

/// `nobody` and its group, where the test itself is root.
const NOBODY: u32 = 65_534;

/// Where Debian puts it, which is on no user's path.
const PROGRAM: &str = "/usr/sbin/dovecot";

/// Its mailboxes belong to whoever logs in with the password `secret`.
#[derive(Debug)]
pub struct Dovecot {
    dir: TempDir,
    port: u16,
    /// Encrypted from the start, where it is encrypted at all.
    tls_port: u16,
    child: Option<Child>,
    uid: u32,
}

/// A port that nothing listens on just now.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

impl Dovecot {
    /// None where it is not installed; then the test says so and is skipped.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// One that takes logins only over an encrypted connection: by STARTTLS, and at [`Dovecot::tls_address`] from the start.
    #[must_use]
    pub fn start_encrypted(certificates: &Certificates) -> Option<Self> {
        Self::start_with(Some(certificates))
    }

    fn start_with(certificates: Option<&Certificates>) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            println!("skipped: no {PROGRAM}; install dovecot-imapd and dovecot-lmtpd");
            return None;
        }
        let dir = tempfile::Builder::new().prefix("dovecot").tempdir().expect("a folder");
        let own = rustix::process::getuid().as_raw();
        let uid = if own == 0 { NOBODY } else { own };
        let gid = if own == 0 { NOBODY } else { rustix::process::getgid().as_raw() };
        let (port, tls_port) = (free_port(), free_port());
        let (ssl, imaps) = match certificates {
            None => ("ssl = no\ndisable_plaintext_auth = no\n".to_owned(), 0),
            Some(certificates) => {
                let (cert, key) = (certificates.certificate(), certificates.key());
                let files = format!("ssl_cert = <{}\nssl_key = <{}\n", cert.display(), key.display());
                (format!("ssl = required\ndisable_plaintext_auth = yes\n{files}"), tls_port)
            }
        };
        let home = dir.path().display();
        // Where the test is no root, its own account is the one without rights.
        let names = if own == 0 {
            "default_internal_user = nobody\ndefault_internal_group = nogroup\ndefault_login_user = nobody\n".to_owned()
        } else {
            let name = |option: &str| {
                let found = Command::new("id").args([option, "-n"]).output().expect("id runs");
                String::from_utf8_lossy(&found.stdout).trim().to_owned()
            };
            format!(
                "default_internal_user = {0}\ndefault_internal_group = {1}\ndefault_login_user = {0}\n",
                name("-u"),
                name("-g")
            )
        };
        let text = format!(
            "base_dir = {home}/run\nstate_dir = {home}/run\nlog_path = {home}/log\nprotocols = imap lmtp\nlisten = 127.0.0.1\n\
             {ssl}mail_location = maildir:{home}/mail/%n\nmail_home = {home}/mail/%n\n\
             first_valid_uid = 1\nmail_max_userip_connections = 100\n{names}\
             passdb {{\n driver = static\n args = password=secret\n}}\n\
             userdb {{\n driver = static\n args = uid={uid} gid={gid} allow_all_users=yes\n}}\n\
             service imap-login {{\n chroot =\n inet_listener imap {{\n  port = {port}\n }}\n inet_listener imaps {{\n  port = {imaps}\n  ssl = yes\n }}\n}}\n\
             service anvil {{\n chroot =\n}}\nservice stats {{\n chroot =\n}}\n\
             service auth {{\n unix_listener sasl {{\n  mode = 0666\n }}\n}}\n\
             service lmtp {{\n unix_listener lmtp {{\n  mode = 0666\n }}\n}}\n"
        );
        fs::write(dir.path().join("dovecot.conf"), text).expect("a configuration");
        for folder in ["run", "mail"] {
            fs::create_dir(dir.path().join(folder)).expect("a folder");
            chown(dir.path().join(folder), Some(uid), Some(gid)).expect("handed over");
        }
        chown(dir.path(), Some(uid), Some(gid)).expect("handed over");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("seen by others");
        let mut server = Self { dir, port, tls_port, child: None, uid };
        server.run();
        Some(server)
    }

    fn run(&mut self) {
        let mut command = Command::new(PROGRAM);
        command.arg("-F").arg("-c").arg(self.dir.path().join("dovecot.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if self.uid == NOBODY {
            command.uid(NOBODY).gid(NOBODY);
        }
        self.child = Some(command.spawn().expect("Dovecot starts"));
        until("Dovecot listens", || TcpStream::connect(("127.0.0.1", self.port)).ok());
    }

    /// Ends it, and what was connected to it.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).expect("told to end");
        child.wait().expect("it ends");
        until("nothing listens any more", || TcpStream::connect(("127.0.0.1", self.port)).err());
    }

    /// Starts it again, on the same port.
    pub fn start_again(&mut self) {
        self.run();
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `127.0.0.1:PORT` where it is encrypted from the start.
    #[must_use]
    pub fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.tls_port)
    }

    /// The socket at which a mail server asks whether a login is right.
    #[must_use]
    pub fn sasl(&self) -> PathBuf {
        self.dir.path().join("run/sasl")
    }

    /// The socket to which mail is handed (LMTP).
    #[must_use]
    pub fn lmtp(&self) -> PathBuf {
        self.dir.path().join("run/lmtp")
    }

    /// The folder of a user's mails.
    #[must_use]
    pub fn maildir(&self, user: &str) -> PathBuf {
        self.dir.path().join("mail").join(user)
    }

    /// Puts a mail into a user's mailbox.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn put(&self, user: &str, name: &str, mail: &str) {
        self.put_at(&self.maildir(user), name, mail);
    }

    /// Puts a mail into another folder of a user, by its name as IMAP writes it; one that is not there is made.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn put_in(&self, user: &str, folder: &str, name: &str, mail: &str) {
        // The mailbox itself comes before what is in it.
        if !self.maildir(user).exists() {
            fs::create_dir(self.maildir(user)).expect("a folder");
            chown(self.maildir(user), Some(self.uid), None).expect("handed over");
        }
        self.put_at(&self.maildir(user).join(format!(".{folder}")), name, mail);
    }

    fn put_at(&self, maildir: &Path, name: &str, mail: &str) {
        let own = |path: &Path| chown(path, Some(self.uid), None).expect("handed over");
        for folder in ["", "tmp", "new", "cur"] {
            let folder = maildir.join(folder);
            if !folder.exists() {
                fs::create_dir(&folder).expect("a folder");
                own(&folder);
            }
        }
        let written = maildir.join("tmp").join(name);
        fs::write(&written, mail).expect("a mail");
        own(&written);
        fs::rename(written, maildir.join("new").join(name)).expect("delivered");
    }

    /// The mails in a user's mailbox, and whether each is marked as read.
    #[must_use]
    pub fn mails(&self, user: &str) -> Vec<(String, bool)> {
        let mut found = vec![];
        for folder in ["new", "cur"] {
            for entry in fs::read_dir(self.maildir(user).join(folder)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let read = name.split_once(":2,").is_some_and(|(_, flags)| flags.contains('S'));
                if let Ok(text) = fs::read(entry.path()) {
                    found.push((String::from_utf8_lossy(&text).into_owned(), read));
                }
            }
        }
        found
    }

    /// Has it number a user's mails anew, as a server does that lost its index.
    pub fn renumber(&mut self, user: &str) {
        let maildir = self.maildir(user);
        self.renumber_at(&maildir);
    }

    /// The same of another folder of theirs, by its name as IMAP writes it.
    pub fn renumber_folder(&mut self, user: &str, folder: &str) {
        let maildir = self.maildir(user).join(format!(".{folder}"));
        self.renumber_at(&maildir);
    }

    fn renumber_at(&mut self, maildir: &Path) {
        self.stop();
        for entry in fs::read_dir(maildir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("dovecot") {
                fs::remove_file(entry.path()).expect("gone");
            }
        }
        self.start_again();
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        self.stop();
    }
}
