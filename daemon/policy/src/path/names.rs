use std::path::Path;

/// Folders whose whole content is secret, as endings of a path.
const SECRET_FOLDERS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/bravesoftware",
    "library/keychains",
    "etc/ssl/private",
    "run/secrets",
    "run/credentials",
    ".env.d",
    ".terraform.d",
];

const SECRET_NAMES: &[&str] = &[
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".fetchmailrc",
    ".msmtprc",
    ".mutt",
    ".smbcredentials",
    "kubeconfig",
    "token",
    "token.json",
    "tokens.json",
    "secrets",
    "secret",
    "passwords.txt",
    "password.txt",
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "sudoers",
    "master.key",
    "login data",
    "cookies.sqlite",
    "wallet.dat",
    "environ",
    "auth.json",
];

const SECRET_ENDINGS: &[&str] = &[
    ".env",
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".pkcs12",
    ".jks",
    ".keystore",
    ".kdbx",
    ".kdb",
    ".ppk",
    ".gpg",
    ".pgp",
    ".secrets",
    ".secret",
    ".ovpn",
    "_history",
    ".age",
    ".keytab",
    ".tfvars",
    ".tfstate",
];

const SECRET_BEGINNINGS: &[&str] = &[
    ".env.",
    ".env~",
    ".env-",
    ".env_",
    ".env ",
    ".terraformrc",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_xmss",
    "secrets.",
    "secret.",
    "ssh_host_",
];

const SECRET_PARTS: &[&str] = &[
    "credential",
    ".keychain",
    "private_key",
    "private-key",
    "privatekey",
    "api_key",
    "apikey",
    "service-account",
    "service_account",
];

/// Templates that are made to be read.
const TEMPLATES: &[&str] = &[".example", ".sample", ".template", ".dist"];

const COPIES: &[&str] = &[".bak", ".backup", ".old", ".orig", ".save", ".swp", ".copy", "~"];

/// Why this path is likely to hold a secret: the name or folder that says so. Case does not matter.
#[must_use]
pub fn secret_name(path: &Path) -> Option<String> {
    let folded = path.to_string_lossy().to_lowercase();
    let name = folded.rsplit('/').next().unwrap_or_default();
    if let Some(folder) = SECRET_FOLDERS.iter().find(|folder| has_part(&folded, folder)) {
        return Some(format!("{folder}/"));
    }
    if TEMPLATES.iter().any(|ending| name.ends_with(ending)) {
        return None;
    }
    // A copy is as secret as what was copied.
    let name = COPIES.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let known = SECRET_NAMES.contains(&name)
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || SECRET_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ["_rsa", "_dsa", "_ecdsa", "_ed25519"].iter().any(|kind| name.ends_with(kind))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || (folded.starts_with("/proc/") && matches!(name, "mem" | "auxv" | "cmdline"));
    known.then(|| name.to_owned())
}

/// Names at which a written file is run or obeyed later by a program that nobody asked about.
const RUNS_LATER: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".githooks",
    ".husky",
    ".vscode",
    ".idea",
    ".cargo",
    ".direnv",
    ".config/systemd",
    ".config/autostart",
    ".config/fish",
    ".config/git",
    ".config/environment.d",
    ".local/bin",
    ".local/share/applications",
    "library/launchagents",
    "etc/cron.d",
    "etc/profile.d",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".inputrc",
    ".vimrc",
    ".exrc",
    ".emacs",
    ".emacs.d",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".envrc",
    ".pam_environment",
    ".mcp.json",
    ".pre-commit-config.yaml",
    ".forward",
    ".procmailrc",
    "authorized_keys",
    "crontab",
];

/// The name in this path at which writing would plant something that runs later. Case does not matter.
#[must_use]
pub fn runs_later(path: &Path) -> Option<&'static str> {
    let folded = path.to_string_lossy().to_lowercase();
    RUNS_LATER.iter().find(|name| has_part(&folded, name)).copied()
}

/// Whether whole components of `path` are exactly `part`, which may itself hold slashes.
fn has_part(path: &str, part: &str) -> bool {
    path.match_indices(part).any(|(at, _)| {
        let before = path[..at].chars().next_back();
        let after = path[at + part.len()..].chars().next();
        matches!(before, None | Some('/')) && matches!(after, None | Some('/'))
    })
}
