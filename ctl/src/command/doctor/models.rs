use ow_protocol::SecretView;

use super::Check;
use crate::command::model::{self, Described};
use crate::context::Context;
use crate::failure::Failure;

const NAME: &str = "models";

/// Whether the models that are configured could be asked; asks nobody but owd.
pub(super) fn check(context: &Context) -> Check {
    // A running owd's keys count: its environment and its credentials are its own.
    let kept = context.with_daemon(async |owd| Ok(owd.secrets().await?)).map_or_else(|_| vec![], |page| page.rows);
    judge(model::configured(context), &kept)
}

fn judge(asked: Result<Option<Vec<Described>>, Failure>, kept: &[SecretView]) -> Check {
    let models = match asked {
        Ok(Some(models)) => models,
        Ok(None) => return Check::ok(NAME, "none is configured: tasks made of steps need none"),
        Err(why) => return Check::warn(NAME, why.message, "see `owctl config check`"),
    };
    let is_kept = |model: &Described| {
        model.key.as_ref().is_some_and(|key| kept.iter().any(|kept| kept.name.eq_ignore_ascii_case(key)))
    };
    let without_key = models.iter().find(|model| !model.is_ready() && !is_kept(model));
    if let Some((model, remedy)) = without_key.and_then(|model| Some((model, model.remedy()?))) {
        let key = model.key.as_deref().unwrap_or_default();
        return Check::warn(NAME, format!("the key {key} of {} is missing", model.name), remedy);
    }
    if let Some(warning) = models.iter().find_map(|model| model.warnings.first()) {
        return Check::warn(NAME, warning.clone(), "`owctl model list` shows the known ones");
    }
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    Check::ok(NAME, format!("{}, with what is needed to ask", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn described(has_key: bool, warnings: &[&str]) -> Described {
        Described {
            name: "openai:gpt".into(),
            asked: "gpt".into(),
            provider: "openai".into(),
            model: "gpt".into(),
            title: None,
            known: true,
            window: 1000,
            output: None,
            tools: true,
            vision: false,
            pdf: false,
            verified: true,
            price: None,
            base_url: None,
            key: Some("OPENAI_API_KEY".into()),
            needs_key: true,
            has_key,
            warnings: warnings.iter().map(|warning| (*warning).into()).collect(),
        }
    }

    #[test]
    fn a_missing_key_and_an_unknown_model_are_warned_of() {
        let state = |model: Described, kept: &[SecretView]| judge(Ok(Some(vec![model])), kept).state;
        let kept = [SecretView { name: "openai_api_key".into(), origin: "file: x".into() }];
        assert_eq!(state(described(true, &[]), &[]), State::Ok);
        assert_eq!(state(described(false, &[]), &[]), State::Warn);
        assert_eq!(state(described(false, &[]), &kept), State::Ok, "the running owd has it");
        assert_eq!(state(described(true, &["it is unknown"]), &[]), State::Warn);
        assert_eq!(judge(Ok(None), &[]).state, State::Ok);
        let faulty = judge(Err(Failure::usage("models.toml:1: not TOML")), &[]);
        assert_eq!((faulty.state, &*faulty.message), (State::Warn, "models.toml:1: not TOML"));
    }
}
