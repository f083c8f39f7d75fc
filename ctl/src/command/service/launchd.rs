use std::path::{Path, PathBuf};

use ow_config::Account;

use super::Start;
use super::steps::{IfItFails, Plan, Standing, Step, succeeds};
use crate::failure::Failure;
use crate::place::environment;

const AGENT: &str = include_str!("../../../../contrib/launchd/owd.plist");

pub(super) fn install(account: Account, start: &Start, log: &Path) -> Result<Plan, Failure> {
    let agent = agent_file(account)?;
    let file = text_of(&agent)?.to_owned();
    let mut words = in_xml(text_of(&start.owd)?);
    for (flag, place) in &start.places {
        put!(words, "</string>\n\t\t<string>{flag}</string>\n\t\t<string>{}", in_xml(text_of(place)?));
    }
    let text = AGENT.replace("@OWD@", &words).replace("@LOG@", &in_xml(text_of(log)?));
    Ok(Plan {
        steps: vec![
            Step::Write { path: agent, text },
            // One that is loaded already cannot be loaded again.
            Step::run(&["launchctl", "bootout", &target()], IfItFails::GoOn),
            Step::run(&["launchctl", "bootstrap", &domain(), &file], IfItFails::TakeBack),
        ],
        afterwards: "owd is installed and runs while you are logged in. See it with `owctl status`.",
    })
}

pub(super) fn uninstall(account: Account) -> Result<Plan, Failure> {
    let agent = agent_file(account)?;
    if !agent.exists() {
        return Err(Failure::usage(format!(
            "{} is not installed: there is no {}",
            super::whose(account),
            agent.display()
        )));
    }
    Ok(Plan {
        steps: vec![Step::run(&["launchctl", "bootout", &target()], IfItFails::GoOn), Step::Remove { path: agent }],
        afterwards: "owd is stopped and no longer a service. Its configuration and its data stay.",
    })
}

pub(super) fn standing(account: Account) -> Result<Standing, Failure> {
    let agent = agent_file(account)?;
    let installed = agent.exists();
    Ok(Standing {
        installed,
        file: agent.display().to_string(),
        enabled: installed,
        active: succeeds(&["launchctl", "print", &target()]),
        lingering: None,
    })
}

fn agent_file(account: Account) -> Result<PathBuf, Failure> {
    if account == Account::System {
        return Err(Failure::usage("a service of the system is not supported here").hint("leave --system out"));
    }
    let home = environment("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| Failure::usage("HOME is not set").hint("set HOME"))?;
    Ok(home.join("Library/LaunchAgents/owd.plist"))
}

fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn target() -> String {
    format!("{}/owd", domain())
}

fn text_of(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| Failure::usage(format!("the path {} is not UTF-8", path.display())).hint("move it"))
}

fn in_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_in_the_agent_as_text() {
        let start = Start { owd: "/opt/a&b/owd".into(), places: vec![("--home", "/srv/a&b".into())] };
        let plan = install(Account::Person, &start, Path::new("/tmp/owd.log")).unwrap();
        let Step::Write { text, .. } = &plan.steps[0] else { panic!("{:?}", plan.steps[0]) };
        assert!(text.contains("<string>/opt/a&amp;b/owd</string>"), "{text}");
        assert!(text.contains("<string>--home</string>\n\t\t<string>/srv/a&amp;b</string>"), "{text}");
        assert!(text.contains("<string>/tmp/owd.log</string>") && !text.contains('@'), "{text}");
    }

    #[test]
    fn the_systems_own_is_refused() {
        assert!(install(Account::System, &Start { owd: "/o".into(), places: vec![] }, Path::new("/l")).is_err());
    }
}
