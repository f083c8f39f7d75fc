use std::os::unix::fs::PermissionsExt;

use super::*;

fn file(folder: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn load_file(content: &str, mode: u32) -> Result<Secrets, SecretError> {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "secrets.toml", content.as_bytes(), mode);
    Secrets::load(&Sources { file: Some(path), ..Sources::default() })
}

fn value(secrets: &Secrets, name: &str) -> Option<String> {
    secrets.value(&name.parse().unwrap()).map(|value| value.expose().to_owned())
}

#[test]
fn a_file_that_only_its_owner_reads_gives_its_values() {
    let secrets = load_file("github-token = \"ghp_12345\"\npin = '0000'\n", 0o600).unwrap();
    assert_eq!(value(&secrets, "GITHUB_TOKEN").as_deref(), Some("ghp_12345"));
    assert_eq!(value(&secrets, "pin").as_deref(), Some("0000"));
    assert_eq!(value(&secrets, "other"), None);
}

#[test]
fn any_other_mode_is_refused_with_the_file_and_the_remedy() {
    for mode in [0o640, 0o604, 0o644, 0o660, 0o610] {
        let error = load_file("a = \"12345\"", mode).unwrap_err().to_string();
        assert!(error.contains("secrets.toml") && error.contains("chmod 600"), "{error}");
        assert!(error.contains(&format!("{mode:04o}")), "{error}");
    }
    assert!(load_file("a = \"12345\"", 0o400).is_ok());
}

#[test]
fn no_error_repeats_a_value() {
    for (content, named) in [
        ("good = \"12345\"\ntoken = sk-FAKEFAKE", "line 2"),
        ("token = \"sk-FAKEFAKE", "line 1"),
        ("token = 5551234", "token"),
        ("[sk]\ntoken = \"sk-FAKEFAKE\"", "sk"),
        ("\"to ken\" = \"sk-FAKEFAKE\"", "to ken"),
        ("token = \"abc\"", "token"),
        ("token = \"\"", "token"),
    ] {
        let error = load_file(content, 0o600).unwrap_err();
        let mut text = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            text.push_str(&source.to_string());
        }
        assert!(text.contains(named), "{content}: {text}");
        for part in ["FAKE", "555", "abc"] {
            assert!(!text.contains(part), "{text}");
        }
    }
}

#[test]
fn a_missing_file_is_no_error_and_holds_nothing() {
    let sources = Sources { file: Some("/nonexistent/secrets.toml".into()), ..Sources::default() };
    assert!(Secrets::load(&sources).unwrap().is_empty());
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sources = Sources { file: Some(folder.path().into()), ..Sources::default() };
    assert!(matches!(Secrets::load(&sources), Err(SecretError::Kind { .. })));
}

#[test]
fn a_credential_wins_over_a_variable_and_a_variable_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    fs::create_dir(&credentials).unwrap();
    file(&credentials, "first", b"from-credential\n", 0o440);
    file(&credentials, "not a name", b"x", 0o440);
    let path = file(
        folder.path(),
        "secrets.toml",
        b"first = \"from-file\"\nsecond = \"from-file\"\nthird = \"from-file\"",
        0o600,
    );
    let environment = [("OWD_SECRET_FIRST", "from-variable"), ("OWD_SECRET_SECOND", "from-variable"), ("PATH", "/bin")]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec();
    let secrets =
        Secrets::load(&Sources { credentials: Some(credentials), environment, file: Some(path), ..Sources::default() })
            .unwrap();
    assert_eq!(value(&secrets, "first").as_deref(), Some("from-credential"));
    assert_eq!(value(&secrets, "second").as_deref(), Some("from-variable"));
    assert_eq!(value(&secrets, "third").as_deref(), Some("from-file"));
    assert_eq!(secrets.names().count(), 3);
}

#[test]
fn nothing_prints_a_value() {
    let secrets = Secrets::from_pairs([("token", "sk-FAKE")]).unwrap();
    assert!(!format!("{secrets:?} {secrets:#?} {:?}", secrets.redactor()).contains("FAKE"));
}
