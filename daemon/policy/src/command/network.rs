//! Which commands are known to reach other machines.
//!
//! What they send or fetch leaves this machine, so that no mode lets them pass: they are external, as a request of
//! owd's own is. The list knows programs by their names and is no wall: a program that it does not name, a script or an
//! interpreter may reach out as well.

use std::path::Path;

use super::script::Script;
use super::unwrap::{Inner, WRAPPING_LIMIT, base_name, inner};
use crate::CommandForm;

/// Programs that do nothing else.
const CLIENTS: &[&str] = &[
    "curl",
    "curlie",
    "wget",
    "wget2",
    "aria2c",
    "axel",
    "http",
    "https",
    "httpie",
    "xh",
    "xhs",
    "grpcurl",
    "websocat",
    "lynx",
    "links",
    "elinks",
    "w3m",
    "nc",
    "ncat",
    "netcat",
    "nc.openbsd",
    "nc.traditional",
    "socat",
    "telnet",
    "ssh",
    "mosh",
    "rsh",
    "rlogin",
    "autossh",
    "sshfs",
    "ssh-copy-id",
    "scp",
    "sftp",
    "ftp",
    "lftp",
    "ncftp",
    "tftp",
    "rcp",
    "rclone",
    "s3cmd",
    "gsutil",
    "azcopy",
    "aws",
    "gcloud",
    "az",
    "doctl",
    "flyctl",
    "fly",
    "heroku",
    "vercel",
    "netlify",
    "wrangler",
    "mail",
    "mailx",
    "s-nail",
    "mutt",
    "neomutt",
    "sendmail",
    "msmtp",
    "ssmtp",
    "swaks",
    "smbclient",
    "ldapsearch",
    "ldapmodify",
    "nslookup",
    "dig",
    "host",
    "drill",
    "whois",
    "ping",
    "ping6",
    "traceroute",
    "tracepath",
    "mtr",
    "nmap",
    "gh",
    "glab",
    "hub",
    "tea",
    "kubectl",
    "oc",
    "helm",
    "twine",
    "ntfy",
    "yt-dlp",
    "youtube-dl",
    "magic-wormhole",
    "wormhole",
    "croc",
    "transmission-cli",
    "irssi",
    "weechat",
    "ansible",
    "ansible-playbook",
];

/// Programs of which some sub-commands do: the first operands, any of which is one.
const PARTLY: &[(&str, &[&str])] = &[
    ("npm", &["publish", "unpublish", "deprecate", "dist-tag", "access", "owner", "login", "adduser", "token", "hook"]),
    ("pnpm", &["publish", "login"]),
    ("yarn", &["publish", "npm"]),
    ("bun", &["publish"]),
    ("cargo", &["publish", "yank", "login", "owner"]),
    ("gem", &["push", "yank", "signin", "owner"]),
    ("poetry", &["publish"]),
    ("uv", &["publish"]),
    ("flit", &["publish"]),
    ("hatch", &["publish"]),
    ("docker", &["push", "pull", "login", "search"]),
    ("podman", &["push", "pull", "login", "search"]),
    ("skopeo", &["copy", "sync", "delete", "login", "inspect"]),
    ("terraform", &["apply", "destroy", "login", "push"]),
    ("tofu", &["apply", "destroy", "login"]),
    ("pulumi", &["up", "destroy", "login"]),
    ("openssl", &["s_client", "ocsp"]),
    ("gpg", &["--send-keys", "--recv-keys", "--refresh-keys", "--search-keys"]),
    ("hg", &["push", "pull", "clone", "incoming", "outgoing", "email"]),
    ("svn", &["checkout", "co", "commit", "ci", "update", "up", "export", "import", "copy", "cp"]),
    ("bzr", &["push", "pull", "branch", "checkout"]),
];

/// What of git speaks to a remote.
const GIT: &[&str] =
    &["push", "fetch", "pull", "clone", "ls-remote", "send-email", "imap-send", "fetch-pack", "send-pack", "http-push"];

/// Options of git before its sub-command that take a word of their own.
const GIT_VALUED: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"];

/// The command of the text that is known to reach another machine, by its first words; none: none is.
pub(crate) fn reaches_out(form: &CommandForm, home: &Path) -> Option<String> {
    match form {
        CommandForm::Argv(argv) => of_argv(argv, home, 0),
        CommandForm::Line(line) => of_script(&Script::read(line, home, None), home, 0),
    }
}

fn of_script(script: &Script, home: &Path, depth: usize) -> Option<String> {
    script.parts().into_iter().find_map(|part| {
        let is_socket = |file: &&String| file.starts_with("/dev/tcp/") || file.starts_with("/dev/udp/");
        let socket = part.writes.iter().chain(&part.reads).find(is_socket).cloned();
        socket.or_else(|| of_argv(&part.texts(), home, depth))
    })
}

fn of_argv(argv: &[String], home: &Path, depth: usize) -> Option<String> {
    if depth > WRAPPING_LIMIT {
        return None;
    }
    if let Some(name) = client(argv) {
        return Some(name);
    }
    inner(argv).iter().find_map(|inner| match inner {
        Inner::Argv(argv) => of_argv(argv, home, depth + 1),
        Inner::Script(text) => of_script(&Script::read(text, home, None), home, depth + 1),
    })
}

fn client(argv: &[String]) -> Option<String> {
    let (program, arguments) = argv.split_first()?;
    let name = base_name(program);
    if CLIENTS.contains(&name) {
        return Some(name.to_owned());
    }
    let is_remote = match name {
        "git" => return git(arguments).map(|sub| format!("git {sub}")),
        // A copy from folder to folder stays here.
        "rsync" => arguments.iter().any(|argument| is_other_host(argument)),
        "psql" | "pg_dump" | "pg_restore" | "mysql" | "mariadb" | "mysqldump" | "mongosh" | "mongo" | "redis-cli"
        | "sqlcmd" => arguments.iter().any(|argument| {
            argument.contains("://") || argument.contains("host=") || is_short_host(argument) || argument == "--host"
        }),
        "xdg-open" | "open" | "firefox" | "chromium" | "chromium-browser" | "google-chrome" | "w3mman"
        | "sensible-browser" => arguments.iter().any(|argument| argument.contains("://")),
        _ => false,
    };
    if is_remote {
        return Some(name.to_owned());
    }
    let (_, subs) = PARTLY.iter().find(|(program, _)| *program == name)?;
    let sub = arguments.iter().find(|argument| subs.contains(&argument.as_str()))?;
    Some(format!("{name} {sub}"))
}

/// `host:path`, `user@host:path`, `host::module`, `rsync://host`: no colon stands in the first part of a local path.
fn is_other_host(argument: &str) -> bool {
    !argument.starts_with('-')
        && argument.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

fn is_short_host(argument: &str) -> bool {
    argument.starts_with("-h") && !argument.starts_with("--")
}

fn git(arguments: &[String]) -> Option<&str> {
    let mut at = 0;
    while let Some(argument) = arguments.get(at).filter(|argument| argument.starts_with('-')) {
        at += if GIT_VALUED.contains(&argument.as_str()) { 2 } else { 1 };
    }
    let (sub, rest) = arguments.get(at..)?.split_first()?;
    let named = |words: &[&str]| rest.iter().any(|argument| words.contains(&argument.as_str()));
    let is_remote = match sub.as_str() {
        "remote" => named(&["update", "show", "prune", "-f"]),
        "submodule" => named(&["update", "add"]),
        "archive" => rest.iter().any(|argument| argument.starts_with("--remote")),
        "lfs" => named(&["push", "pull", "fetch"]),
        "svn" | "p4" => true,
        sub => GIT.contains(&sub),
    };
    is_remote.then_some(sub.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        reaches_out(&CommandForm::Line(line.into()), Path::new("/home/u"))
    }

    #[test]
    fn a_client_is_known_behind_wrappers_shells_paths_and_pipes() {
        for (line, expected) in [
            ("curl https://example.org", "curl"),
            ("/usr/bin/curl -d @x https://example.org", "curl"),
            ("cat notes | nc example.org 9", "nc"),
            ("make && wget -q example.org", "wget"),
            ("env A=1 timeout 5 nohup curl example.org", "curl"),
            ("sh -c 'cd /tmp; ssh host id'", "ssh"),
            ("echo $(dig +short secret.example.org)", "dig"),
            ("find . -name '*.md' -exec scp {} host: ';'", "scp"),
            ("xargs -n 1 curl", "curl"),
            ("busybox wget example.org", "wget"),
            ("rsync -a notes host:notes", "rsync"),
            ("rsync -a notes rsync://host/notes", "rsync"),
            ("rsync -a notes me@host::notes", "rsync"),
            ("git push", "git push"),
            ("git -C /srv/x -c a=b fetch origin", "git fetch"),
            ("git clone https://example.org/x", "git clone"),
            ("git remote update", "git remote"),
            ("git submodule update --init", "git submodule"),
            ("npm publish --access public", "npm publish"),
            ("npm --tag next publish", "npm publish"),
            ("cargo publish", "cargo publish"),
            ("docker push x", "docker push"),
            ("openssl s_client -connect example.org:443", "openssl s_client"),
            ("psql -h db.example.org", "psql"),
            ("psql postgres://db.example.org/x", "psql"),
            ("xdg-open https://example.org/?q=secret", "xdg-open"),
            ("echo secret > /dev/tcp/example.org/80", "/dev/tcp/example.org/80"),
            ("curl 'unfinished", "curl"),
        ] {
            assert_eq!(found(line).as_deref(), Some(expected), "{line}");
        }
        let argv = ["timeout", "5", "mail", "-s", "x", "me@example.org"].map(str::to_owned).to_vec();
        assert_eq!(reaches_out(&CommandForm::Argv(argv), Path::new("/")).as_deref(), Some("mail"));
    }

    #[test]
    fn what_stays_on_the_machine_is_none() {
        for line in [
            "make install",
            "cargo test",
            "git status",
            "git commit -m push",
            "git stash push",
            "git remote -v",
            "rsync -a notes/ /backup/notes/",
            "rsync -a ./a:b /backup",
            "echo curl",
            "grep -r wget .",
            "npm test",
            "psql -c 'select 1'",
            "xdg-open notes.pdf",
            "echo x > /dev/null",
            "docker ps",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
