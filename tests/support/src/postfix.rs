//! A real mail server on loopback, with folders of its own: Postfix, which hands what it takes to Dovecot.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Certificates, Dovecot, free_port, until};

/// Where Debian puts it, which is on no user's path.
const PROGRAM: &str = "/usr/sbin/postfix";

/// Takes mail for `example.org` and `example.net` and hands it to Dovecot; mail for `bounce.example` comes back, and that
/// to `refused@example.org` is not taken.
#[derive(Debug)]
pub struct Postfix {
    dir: TempDir,
    port: u16,
    tls_port: u16,
    child: Child,
}

impl Postfix {
    /// None where it is not installed, or the test is not root, whom its master process wants; then the test says so and is
    /// skipped.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn start(dovecot: &Dovecot) -> Option<Self> {
        Self::start_with(dovecot, None)
    }

    /// One that takes logins, which Dovecot knows, and only over an encrypted connection: by STARTTLS, and at
    /// [`Postfix::tls_address`] from the start.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn start_encrypted(dovecot: &Dovecot, certificates: &Certificates) -> Option<Self> {
        Self::start_with(dovecot, Some(certificates))
    }

    fn start_with(dovecot: &Dovecot, certificates: Option<&Certificates>) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            println!("skipped: no {PROGRAM}; install postfix");
            return None;
        }
        if !rustix::process::getuid().is_root() {
            println!("skipped: Postfix starts only as root");
            return None;
        }
        let dir = tempfile::Builder::new().prefix("postfix").tempdir().expect("a folder");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("seen by others");
        let (port, tls_port) = (free_port(), free_port());
        let (tls, smtps) = match certificates {
            None => (String::new(), String::new()),
            Some(certificates) => {
                let main = format!(
                    "smtpd_tls_security_level = may\nsmtpd_tls_cert_file = {}\nsmtpd_tls_key_file = {}\nsmtpd_tls_auth_only = yes\n\
                     smtpd_sasl_auth_enable = yes\nsmtpd_sasl_type = dovecot\nsmtpd_sasl_path = {}\n",
                    certificates.certificate().display(),
                    certificates.key().display(),
                    dovecot.sasl().display()
                );
                (main, format!("127.0.0.1:{tls_port} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes\n"))
            }
        };
        let home = dir.path().display();
        for folder in ["conf", "queue", "data"] {
            fs::create_dir(dir.path().join(folder)).expect("a folder");
        }
        let owned = Command::new("chown").arg("postfix").arg(dir.path().join("data")).status().expect("chown runs");
        assert!(owned.success(), "there is an account for Postfix");
        let main = format!(
            "compatibility_level = 3.6\nqueue_directory = {home}/queue\ndata_directory = {home}/data\ncommand_directory = /usr/sbin\n\
             daemon_directory = /usr/lib/postfix/sbin\nmail_owner = postfix\nsetgid_group = postdrop\nmyhostname = mx.example.net\n\
             mydestination =\nlocal_recipient_maps =\nrelay_domains = example.org, example.net\n\
             relay_transport = lmtp:unix:{lmtp}\ntransport_maps = inline:{{ bounce.example=error:5.1.1:no-such-mailbox }}\n\
             inet_interfaces = 127.0.0.1\ninet_protocols = ipv4\nmynetworks = 127.0.0.0/8\nsmtpd_relay_restrictions = permit_mynetworks, reject\n\
             smtpd_recipient_restrictions = check_recipient_access inline:{{ refused@example.org=REJECT }}, permit\n\
             maillog_file = {home}/log\nmaillog_file_prefixes = {home}\nsmtputf8_enable = no\nalias_maps =\nalias_database =\n\
             {tls}minimal_backoff_time = 1s\nmaximal_backoff_time = 2s\nqueue_run_delay = 1s\nlmtp_destination_recipient_limit = 1\n",
            lmtp = dovecot.lmtp().display()
        );
        fs::write(dir.path().join("conf/main.cf"), main).expect("a configuration");
        let services = format!(
            "127.0.0.1:{port} inet n - n - - smtpd\n{smtps}cleanup unix n - n - 0 cleanup\nqmgr unix n - n 300 1 qmgr\n\
             rewrite unix - - n - - trivial-rewrite\nbounce unix - - n - 0 bounce\ndefer unix - - n - 0 bounce\ntrace unix - - n - 0 bounce\n\
             verify unix - - n - 1 verify\nflush unix n - n 1000? 0 flush\nproxymap unix - - n - - proxymap\nsmtp unix - - n - - smtp\n\
             lmtp unix - - n - - lmtp\nerror unix - - n - - error\nretry unix - - n - - error\nanvil unix - - n - 1 anvil\n\
             scache unix - - n - 1 scache\ntlsmgr unix - - n 1000? 1 tlsmgr\npostlog unix-dgram n - n - 1 postlogd\n"
        );
        fs::write(dir.path().join("conf/master.cf"), services).expect("a configuration");
        let child = Command::new(PROGRAM)
            .arg("-c")
            .arg(dir.path().join("conf"))
            .arg("start-fg")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Postfix starts");
        let server = Self { dir, port, tls_port, child };
        until("Postfix listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(server)
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

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Sends a mail, as a person's program does.
    ///
    /// # Panics
    ///
    /// When it is not taken.
    pub fn submit(&self, from: &str, to: &str, mail: &str) {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("Postfix listens");
        let mut answers = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut said = |line: &str| {
            (&stream).write_all(line.as_bytes()).expect("said");
            loop {
                let mut answer = String::new();
                answers.read_line(&mut answer).expect("an answer");
                assert!(answer.starts_with(['2', '3']), "{line}: {answer}");
                if answer.as_bytes().get(3) != Some(&b'-') {
                    break;
                }
            }
        };
        said("");
        said("EHLO laptop.example.org\r\n");
        said(&format!("MAIL FROM:<{from}>\r\n"));
        said(&format!("RCPT TO:<{to}>\r\n"));
        said("DATA\r\n");
        said(&format!("{}\r\n.\r\n", mail.trim_end().replace("\r\n.", "\r\n..")));
        said("QUIT\r\n");
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        let file = self.dir.path().join("queue/pid/master.pid");
        let pid = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // One that is gone already needs no telling.
            kill_process(pid, Signal::TERM).ok();
        }
        drop(self.child.wait());
    }
}
