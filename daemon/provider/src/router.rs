use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use ow_clock::Clock;
use ow_secret::SecretValue;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::retry::Next;
use crate::{
    Body, Capabilities, Completion, CompletionError, Delta, HttpProvider, ModelError, ModelTable, PRESETS, Preset,
    Provider, ProviderOverride, ProviderSettings, Request, RetryPolicy, SettingsError,
};

/// Where keys are found, by name; asked at each call.
#[derive(Clone)]
pub struct Keys(Arc<Find>);

type Find = dyn Fn(&str) -> Option<SecretValue> + Send + Sync;

impl Keys {
    pub fn new(find: impl Fn(&str) -> Option<SecretValue> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// No keys at all.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| None)
    }

    /// `name` is written as the configuration has it, or as an environment variable's: `OPENAI_API_KEY`.
    pub(crate) fn find(&self, name: &str) -> Option<SecretValue> {
        (self.0)(name)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// What the configuration says of models.
#[derive(Clone, Debug)]
pub struct RouterConfig {
    /// Gets every name that names no known provider.
    pub default_provider: String,
    /// Besides the presets, which are always there.
    pub providers: Vec<ProviderOverride>,
    pub models: ModelTable,
    pub retry: RetryPolicy,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self {
            default_provider: "openai".into(),
            providers: vec![],
            models: ModelTable::shipped(),
            retry: RetryPolicy::default(),
        }
    }
}

/// Finds the provider of a `provider:model` name and sees a completion through.
///
/// Clones share one configuration and one set of connections.
#[derive(Clone, Debug)]
pub struct Router {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    keys: Keys,
    clock: Clock,
    state: RwLock<Arc<State>>,
}

struct State {
    default_provider: String,
    providers: BTreeMap<String, ProviderSettings>,
    models: Arc<ModelTable>,
    retry: RetryPolicy,
    /// Made at the first call, kept for the connections.
    clients: Mutex<HashMap<String, Arc<dyn Provider>>>,
    /// Given by the caller instead of being reached over HTTP.
    mounted: BTreeMap<String, Arc<dyn Provider>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("default_provider", &self.default_provider).finish_non_exhaustive()
    }
}

/// A model's name, understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resolved {
    pub provider: String,
    /// As the provider names it.
    pub model: String,
    pub capabilities: Capabilities,
    /// To be shown once a run, and by `owctl config check`.
    pub warnings: Vec<ModelWarning>,
}

impl Resolved {
    /// `provider:model`, as replies carry it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.provider, self.model)
    }
}

/// Models that are about to be asked, in their order, with what goes to the first of them.
#[derive(Debug)]
pub struct Asking {
    router: Router,
    /// Whatever is configured meanwhile, what was put together is what goes out.
    state: Arc<State>,
    goals: Vec<Resolved>,
    request: Request,
    first: Option<Body>,
}

/// What a person should know of the model they chose.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ModelWarning {
    #[error(
        "`{prefix}` is no known provider, so that the whole of `{goal}` goes to `{default}` as a model's name; \
         write `{default}:{goal}` if that is meant, or one of {known}"
    )]
    UnknownPrefix { goal: String, prefix: String, default: String, known: String },
    #[error(
        "`{name}` is not in the table of models: it runs at your own risk, with a window of {window} tokens assumed; \
             `owctl model list` shows those that are known, and models.toml in the configuration folder adds to them"
    )]
    UnknownModel { name: String, window: u64 },
    #[error("`{name}` cannot call tools")]
    NoTools { name: String },
}

/// What happens on the way to a completion.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Of the attempt under way. After [`Progress::Waiting`] and [`Progress::Switched`] a reply begins anew.
    Delta(Delta<'a>),
    /// Attempt number `attempt` at the model failed; the next comes after `delay`.
    Waiting { model: &'a str, attempt: u32, delay: Duration, error: &'a ModelError },
    /// The next model of the list takes over.
    Switched { from: &'a str, to: &'a str, error: &'a ModelError },
}

impl Router {
    pub fn new(config: RouterConfig, keys: Keys, clock: Clock) -> Result<Self, SettingsError> {
        let state = State::new(config, None)?;
        Ok(Self { shared: Arc::new(Shared { keys, clock, state: RwLock::new(Arc::new(state)) }) })
    }

    /// Replaces the configuration. Calls under way go on as they began; providers that did not change keep their
    /// connections.
    pub fn reconfigure(&self, config: RouterConfig) -> Result<(), SettingsError> {
        let before = self.state();
        let state = State::new(config, Some(&before))?;
        *self.shared.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
        Ok(())
    }

    /// Puts a provider of the caller's own under a name, in place of what may be there.
    pub fn mount(&self, name: &str, provider: Arc<dyn Provider>) {
        let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        let mut mounted = state.mounted.clone();
        mounted.insert(name.to_owned(), provider);
        let clients = state.clients().clone();
        *state = Arc::new(State {
            default_provider: state.default_provider.clone(),
            providers: state.providers.clone(),
            models: Arc::clone(&state.models),
            retry: state.retry,
            clients: Mutex::new(clients),
            mounted,
        });
    }

    #[must_use]
    pub fn models(&self) -> Arc<ModelTable> {
        Arc::clone(&self.state().models)
    }

    /// The providers as they are set up, in the order of the alphabet.
    #[must_use]
    pub fn providers(&self) -> Vec<ProviderSettings> {
        self.state().providers.values().cloned().collect()
    }

    /// Whether a call to this provider has what it needs: its key is there, or it needs none.
    #[must_use]
    pub fn has_key(&self, provider: &str) -> bool {
        let state = self.state();
        let Some(settings) = state.providers.get(&state.known(provider).unwrap_or_default()) else { return false };
        !settings.needs_key || settings.key.as_ref().is_some_and(|key| self.shared.keys.find(key).is_some())
    }

    /// Understands `provider:model`. Text before the first colon counts only if it names a provider.
    #[must_use]
    pub fn resolve(&self, goal: &str) -> Resolved {
        self.state().resolve(goal)
    }

    /// Puts together what the first of `goals` is asked.
    #[must_use]
    pub fn asking(&self, goals: &[String], mut request: Request) -> Asking {
        let state = self.state();
        let goals: Vec<Resolved> = goals.iter().map(|goal| state.resolve(goal)).collect();
        let first = goals.first().and_then(|goal| {
            request.model.clone_from(&goal.model);
            Some(self.client(&state, &goal.provider).ok()?.body(&request))
        });
        Asking { router: self.clone(), state, goals, request, first }
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.shared.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn client(&self, state: &State, name: &str) -> Result<Arc<dyn Provider>, ModelError> {
        if let Some(provider) = state.mounted.get(name) {
            return Ok(Arc::clone(provider));
        }
        let mut clients = state.clients();
        if let Some(provider) = clients.get(name) {
            return Ok(Arc::clone(provider));
        }
        let settings = state.providers.get(name).expect("names are resolved to providers of the same state");
        let made = HttpProvider::new(
            settings.clone(),
            Arc::clone(&state.models),
            self.shared.keys.clone(),
            self.shared.clock.clone(),
        )?;
        let made: Arc<dyn Provider> = Arc::new(made);
        clients.insert(name.to_owned(), Arc::clone(&made));
        Ok(made)
    }
}

impl Asking {
    /// The body with which the request goes out first; none where its provider cannot be spoken to at all.
    #[must_use]
    pub fn body(&self) -> Option<&Bytes> {
        self.first.as_ref().map(|first| &first.bytes)
    }

    /// Makes a completion by the first of the models that can: each is repeated where that helps, then the next takes over.
    ///
    /// Only what another attempt or another house may mend is repeated or handed on; a wrong key, an empty account, a
    /// history longer than the window, a refusal and a bad request end as what they are. An error carries the longest
    /// text that any attempt had brought.
    ///
    /// # Cancel safety
    ///
    /// As [`Provider::complete`].
    pub async fn complete(
        self,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<Completion, CompletionError> {
        let Self { router, state, goals, mut request, mut first } = self;
        let mut best: Option<String> = None;
        let mut before: Option<String> = None;
        let mut goals = goals.into_iter().peekable();
        while let Some(goal) = goals.next() {
            let name = goal.name();
            request.model.clone_from(&goal.model);
            let provider = match router.client(&state, &goal.provider) {
                Ok(provider) => provider,
                Err(error) => return Err(error.into()),
            };
            let mut made = 0;
            let mut error = loop {
                made += 1;
                let mut deltas = |delta: Delta<'_>| progress(Progress::Delta(delta));
                let body = first.take().unwrap_or_else(|| provider.body(&request));
                let mut error = match provider.complete(&request, body, &mut deltas, cancel).await {
                    Ok(completion) => return Ok(completion),
                    Err(CompletionError::Failed(error)) => error,
                    Err(CompletionError::Cancelled { partial }) => {
                        return Err(CompletionError::Cancelled { partial: longer(best, partial) });
                    }
                };
                best = longer(best, error.partial.take());
                match state.retry.decide(made, goals.peek().is_some(), &error, random()) {
                    Next::Wait(delay) => {
                        tracing::info!(model = %name, made, ?delay, kind = ?error.kind, "a model call is repeated");
                        progress(Progress::Waiting { model: &name, attempt: made, delay, error: &error });
                        tokio::select! {
                            biased;
                            () = cancel.cancelled() => return Err(CompletionError::Cancelled { partial: best }),
                            () = tokio::time::sleep(delay) => {}
                        }
                    }
                    Next::GiveUp => break error,
                    Next::End => return Err(ended(error, before, best).into()),
                }
            };
            let Some(next) = goals.peek() else { return Err(ended(error, before, best).into()) };
            let next = next.name();
            tracing::info!(from = %name, to = %next, kind = ?error.kind, "the next model of the list takes over");
            progress(Progress::Switched { from: &name, to: &next, error: &error });
            before = Some(std::mem::take(&mut error.message));
        }
        Err(ModelError::new(ow_model::ModelFailure::BadRequest, "no model is named").into())
    }
}

impl State {
    fn new(config: RouterConfig, before: Option<&Self>) -> Result<Self, SettingsError> {
        let RouterConfig { default_provider, providers: overrides, models, retry } = config;
        let mut providers: BTreeMap<String, ProviderSettings> =
            PRESETS.iter().map(|preset| (preset.name.to_owned(), preset.settings())).collect();
        for change in overrides {
            let settings = change.settings()?;
            providers.insert(settings.name.clone(), settings);
        }
        let mounted = before.map(|before| before.mounted.clone()).unwrap_or_default();
        let mut state =
            Self { default_provider, providers, models: Arc::new(models), retry, clients: Mutex::default(), mounted };
        let Some(default) = state.known(&state.default_provider) else {
            return Err(SettingsError::Unplaced { name: state.default_provider });
        };
        state.default_provider = default;
        if let Some(before) = before {
            // A client holds the table of models: only where both are the same does it stay.
            let same = |name: &String| before.providers.get(name) == state.providers.get(name);
            let mut clients = before.clients().clone();
            clients.retain(|name, _| same(name) && before.models.is_same(&state.models));
            state.clients = Mutex::new(clients);
        }
        Ok(state)
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<dyn Provider>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The provider of this name or alias.
    fn known(&self, name: &str) -> Option<String> {
        if self.providers.contains_key(name) || self.mounted.contains_key(name) {
            return Some(name.to_owned());
        }
        Preset::named(name).map(|preset| preset.name.to_owned())
    }

    fn resolve(&self, goal: &str) -> Resolved {
        let goal = goal.trim();
        let mut warnings = vec![];
        let prefix = goal.split_once(':');
        let (provider, model) = match prefix.map(|(prefix, model)| (self.known(prefix), model)) {
            Some((Some(provider), model)) => (provider, model),
            Some((None, _)) | None => (self.default_provider.clone(), goal),
        };
        if let Some((prefix, whole)) = prefix
            && whole != model
        {
            warnings.push(ModelWarning::UnknownPrefix {
                goal: goal.into(),
                prefix: prefix.into(),
                default: self.default_provider.clone(),
                known: self.providers.keys().cloned().collect::<Vec<_>>().join(", "),
            });
        }
        let capabilities = self.models.capabilities(&provider, model);
        let name = format!("{provider}:{model}");
        if !capabilities.is_known {
            warnings.push(ModelWarning::UnknownModel { name, window: capabilities.window });
        } else if !capabilities.tools {
            warnings.push(ModelWarning::NoTools { name });
        }
        Resolved { provider, model: model.to_owned(), capabilities, warnings }
    }
}

fn longer(one: Option<String>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.len() > one.len() { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn ended(mut error: ModelError, before: Option<String>, best: Option<String>) -> ModelError {
    if let Some(before) = before {
        error.message = format!("{}; before that: {before}", error.message);
    }
    error.partial = best;
    error
}

/// In `0.0..1.0`.
fn random() -> f64 {
    getrandom::u32().map_or(0.5, |bits| f64::from(bits) / (f64::from(u32::MAX) + 1.0))
}
