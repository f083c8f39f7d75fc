use clap::ValueEnum;
use clap_complete::Shell;

use crate::cli;
use crate::context::Context;
use crate::output::write;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl completions bash > ~/.local/share/bash-completion/completions/owctl
  owctl completions zsh > ~/.zfunc/_owctl
  owctl completions fish > ~/.config/fish/completions/owctl.fish")]
pub(crate) struct Completions {
    shell: For,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum For {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(&self, context: &Context) {
        let shell = match self.shell {
            For::Bash => Shell::Bash,
            For::Zsh => Shell::Zsh,
            For::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut cli::grammar(), "owctl", &mut script);
        let script = String::from_utf8(script).expect("the grammar is text");
        if context.out.is_json() {
            context.out.json(&serde_json::json!({ "script": script }));
        } else {
            write(&script);
        }
    }
}
