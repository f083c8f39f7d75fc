#![expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use expect_test::{Expect, expect};
use ow_model::ZoneName;
use tempfile::TempDir;

use super::*;
use crate::{Config, ConfigError, Host};

fn read(text: &str) -> Result<Config, ConfigError> {
    let host = Host { home: "/home/ada".into(), timezone: ZoneName("UTC".into()) };
    Config::parse(text, Some(Path::new("/etc/owd/owd.toml")), &host)
}

fn one(lines: &str) -> HookConfig {
    let config = read(&format!("[[hook]]\n{lines}")).expect("a right hook");
    config.hook.into_iter().next().expect("one hook")
}

fn faults(lines: &str, expected: Expect) {
    expected.assert_eq(&format!("{}\n", read(&format!("[[hook]]\n{lines}")).expect_err("the hook is faulty")));
}

#[test]
fn a_matcher_fits_the_whole_name_of_a_tool() {
    let fits = |matcher: &str, name: &str| Matcher::new(matcher).expect("a pattern").is_match(name);
    assert!(fits("edit_file|write_file", "edit_file") && fits("edit_file|write_file", "write_file"));
    assert!(!fits("edit_file|write_file", "read_file") && !fits("file", "write_file"));
    assert!(!fits("sh", "shell") && fits("sh.*", "shell"));
    assert!(!fits("shell|x", "xshell") && !fits("shell", "shell\n"));
}

#[test]
fn without_a_matcher_every_tool_is_meant() {
    let hook = one("event = \"pre-tool-use\"\nmatcher = \"\"\ncommand = \"./x.sh\"");
    assert!(hook.matches(&"shell".parse().expect("a name")));
    assert_eq!((hook.timeout, hook.on_failure), (Span::from_secs(10), OnFailure::Deny));
}

#[test]
fn commands_lie_in_the_folder_of_hooks() {
    let command = |text: &str| one(&format!("event = \"stop\"\ncommand = \"{text}\"")).command;
    assert_eq!(command("./x.sh"), Path::new("./x.sh"));
    assert_eq!(command("hooks/x.sh"), Path::new("./x.sh"));
    assert_eq!(command("a/b.sh"), Path::new("./a/b.sh"));
    assert_eq!(command("/etc/owd/hooks/x.sh"), Path::new("/etc/owd/hooks/x.sh"));
}

#[test]
fn what_is_wrong_with_a_hook_is_said() {
    let of = |command: &str| format!("event = \"stop\"\ncommand = \"{command}\"");
    faults(
        &of("guard"),
        expect![[r#"
            /etc/owd/owd.toml:3:11: hook[1].command = "guard": a bare name; write `./guard` for a program in /etc/owd/hooks
        "#]],
    );
    faults(
        &of("/bin/true"),
        expect![[r#"
            /etc/owd/owd.toml:3:11: hook[1].command = "/bin/true": lies outside the folder of hooks; copy it into /etc/owd/hooks, where no task can change it
        "#]],
    );
    faults(
        &of("/etc/owd/hooks/../x.sh"),
        expect![[r#"
            /etc/owd/owd.toml:3:11: hook[1].command = "/etc/owd/hooks/../x.sh": a path with `..`; put the program into /etc/owd/hooks and write `./name`
        "#]],
    );
    faults(
        &of("../x.sh"),
        expect![[r#"
            /etc/owd/owd.toml:3:11: hook[1].command = "../x.sh": a path with `..`; put the program into /etc/owd/hooks and write `./name`
        "#]],
    );
    faults(
        "event = \"pre-tool-use\"\nmatcher = \"a)|(b\"\ncommand = \"./x.sh\"",
        expect![[r#"
            /etc/owd/owd.toml:3:11: hook[1].matcher = "a)|(b": not a regular expression: found closing ')' without matching '('; write one, as `shell|write_file`
        "#]],
    );
    faults(
        "event = \"stop\"\nmatcher = \"shell\"\ncommand = \"./x.sh\"",
        expect![[r#"
            /etc/owd/owd.toml:3:11: hook[1].matcher = "shell": this event is about no tool; remove the matcher
        "#]],
    );
    faults(
        "event = \"PreToolUse\"",
        expect![[r#"
            /etc/owd/owd.toml:1:1: hook[1]: no `command`; name the program: `command = "./guard"`
            /etc/owd/owd.toml:2:9: hook[1].event = "PreToolUse": not one of the known values; did you mean "pre-tool-use"?
        "#]],
    );
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Self(dir);
        fs::create_dir(folder.hooks()).expect("made");
        folder.mode("hooks", 0o755);
        folder
    }

    fn hooks(&self) -> PathBuf {
        self.0.path().join("hooks")
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.0.path().join(path), fs::Permissions::from_mode(mode)).expect("its mode is set");
    }

    fn write(&self, path: &str, mode: u32) {
        fs::write(self.0.path().join(path), "#!/bin/sh\n").expect("written");
        self.mode(path, mode);
    }

    fn program(&self, command: &str) -> Result<PathBuf, String> {
        let hook = HookConfig { command: command.into(), ..one("event = \"stop\"\ncommand = \"./x\"") };
        let base = self.0.path().canonicalize().expect("there");
        let shown = |error: HookFault| error.to_string().replace(&self.0.path().display().to_string(), "");
        let program = hook.program(&self.hooks()).map_err(shown)?;
        Ok(program.strip_prefix(base).expect("below").to_path_buf())
    }
}

#[test]
fn a_program_is_looked_at_before_it_runs() {
    let folder = Folder::new();
    folder.write("hooks/good", 0o700);
    folder.write("hooks/plain", 0o600);
    folder.write("hooks/open", 0o722);
    folder.write("outside", 0o700);
    symlink("../outside", folder.hooks().join("link")).expect("linked");
    assert_eq!(folder.program("good"), Ok("hooks/good".into()));
    assert_eq!(folder.program("gone"), Err("there is no file /hooks/gone".into()));
    assert!(folder.program("plain").unwrap_err().contains("not executable"));
    assert!(folder.program("open").unwrap_err().contains("can be written by others (mode 0722)"));
    assert!(folder.program("link").unwrap_err().contains("lies outside"));
    assert!(folder.program("/bin/sh").unwrap_err().contains("lies outside"));
    folder.mode("hooks", 0o777);
    assert!(folder.program("good").unwrap_err().contains("/hooks can be written by others"));
}
