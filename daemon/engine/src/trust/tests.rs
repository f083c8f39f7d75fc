use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

struct Place {
    _dir: tempfile::TempDir,
    data: PathBuf,
    /// A workspace with one hook.
    shop: PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().canonicalize().expect("a folder");
    let (data, shop) = (root.join("data"), root.join("shop"));
    fs::create_dir_all(&data).expect("a folder");
    fs::create_dir_all(shop.join(".owd/hooks")).expect("a folder");
    let text = "[[hook]]\nevent = \"pre-tool-use\"\nmatcher = \"shell\"\ncommand = \"./check\"\n";
    fs::write(shop.join(".owd/workspace.toml"), text).expect("a file");
    fs::write(shop.join(".owd/hooks/check"), "#!/bin/sh\nexit 0\n").expect("a file");
    Place { _dir: dir, data, shop }
}

fn hashes(offer: &Offer) -> Vec<BlobHash> {
    offer.hooks.iter().filter_map(|offered| offered.hash.clone().ok()).collect()
}

fn give(trust: &Trust, path: &Path) -> Result<Offer, TrustError> {
    let shown = hashes(&trust.look(path));
    trust.give(path, &shown, "ada", Timestamp::UNIX_EPOCH)
}

fn is_trusted(trust: &Trust, path: &Path) -> bool {
    trust.look(path).hooks.iter().all(|offered| offered.trusted)
}

#[test]
fn a_hook_is_trusted_as_it_is_and_no_longer_once_anything_of_it_changes() {
    let Place { data, shop, .. } = &place();
    let trust = Trust::open(data.clone());
    assert!(!is_trusted(&trust, shop));
    let offer = give(&trust, shop).expect("trusted");
    assert!(offer.hooks[0].trusted && is_trusted(&Trust::open(data.clone()), shop));
    let copy = trust.program(&hashes(&offer)[0]);
    assert_eq!(fs::read_to_string(&copy).expect("kept"), "#!/bin/sh\nexit 0\n");
    let program = shop.join(".owd/hooks/check");
    fs::write(&program, "#!/bin/sh\nexit 2\n").expect("a file");
    assert!(!is_trusted(&trust, shop));
    fs::write(&program, "#!/bin/sh\nexit 0\n").expect("a file");
    assert!(is_trusted(&trust, shop), "as it was");
    let file = shop.join(".owd/workspace.toml");
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("shell", ".*")).expect("a file");
    assert!(!is_trusted(&trust, shop), "it would run at other calls");
}

#[test]
fn what_changed_after_it_was_shown_is_not_trusted() {
    let Place { data, shop, .. } = &place();
    let trust = Trust::open(data.clone());
    let shown = hashes(&trust.look(shop));
    fs::write(shop.join(".owd/hooks/check"), "rm -rf ~").expect("a file");
    let error = trust.give(shop, &shown, "ada", Timestamp::UNIX_EPOCH).expect_err("changed");
    assert!(matches!(error, TrustError::Changed { .. }) && trust.all().is_empty(), "{error}");
}

#[test]
fn a_link_and_the_real_path_are_one_workspace_and_the_file_is_private() {
    let Place { data, shop, .. } = &place();
    let trust = Trust::open(data.clone());
    let link = shop.with_file_name("link");
    symlink(shop, &link).expect("a link");
    give(&trust, &link).expect("trusted");
    assert!(is_trusted(&trust, shop) && is_trusted(&trust, &link));
    let mode = |path: &Path| path.metadata().expect("there").mode() & 0o777;
    assert_eq!((mode(&data.join("trust.json")), mode(&data.join("trusted-hooks"))), (0o600, 0o700));
    assert!(trust.take(shop).expect("written"));
    assert!(!is_trusted(&trust, &link) && !trust.take(&link).expect("written"));
}

#[test]
fn trust_in_a_folder_that_was_moved_away_can_be_taken_back() {
    let Place { data, shop, .. } = &place();
    let trust = Trust::open(data.clone());
    give(&trust, shop).expect("trusted");
    fs::rename(shop, shop.with_file_name("elsewhere")).expect("moved");
    assert!(!is_trusted(&trust, &shop.with_file_name("elsewhere")), "trust is the folder's, not its content's");
    assert_eq!(trust.all().len(), 1);
    assert!(trust.take(&shop.join("../shop")).expect("written"));
    assert!(Trust::open(data.clone()).all().is_empty());
}

#[test]
fn a_damaged_file_of_trust_trusts_nothing() {
    let Place { data, shop, .. } = &place();
    give(&Trust::open(data.clone()), shop).expect("trusted");
    let file = data.join("trust.json");
    let half = fs::read_to_string(&file).expect("a file");
    fs::write(&file, &half[..half.len() / 2]).expect("a file");
    let trust = Trust::open(data.clone());
    assert!(!is_trusted(&trust, shop) && trust.all().is_empty());
    give(&trust, shop).expect("trusted again");
}

#[test]
fn what_cannot_be_trusted_says_why() {
    let Place { data, shop, .. } = &place();
    let trust = Trust::open(data.clone());
    let why = |path: &Path| give(&trust, path).expect_err("refused").to_string();
    assert!(why(&shop.join("gone")).starts_with("there is no folder"));
    assert!(why(data).contains("brings no hooks"));
    fs::remove_file(shop.join(".owd/hooks/check")).expect("removed");
    assert!(why(shop).contains("there is no file"));
    fs::write(shop.join(".owd/workspace.toml"), "hok = 1\n").expect("a file");
    assert!(why(shop).contains("did you mean `hook`?"));
}
