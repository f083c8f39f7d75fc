//! A chat on a terminal. It writes into the scrollback, as a shell does, and keeps a few rows at the bottom: what goes
//! on, what is asked, the line to type in.
//!
//! [`conversation`] decides and draws without a clock or a terminal; here events are brought to it, and what it wants is
//! done.

use std::collections::VecDeque;
use std::future::pending;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use ow_client::{Client, SessionEvent, SessionStream};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Chat, attach, models, opening};
use crate::context::Context;
use crate::editor::Draft;
use crate::failure::Failure;
use conversation::Conversation;
use exchange::{Ask, Effect, Farewell, Input, Told};
use history::History;
use screen::Screen;
use tty::{Tty, TypedBefore};

mod answers;
mod call;
mod card;
mod conversation;
mod entries;
mod errand;
mod exchange;
mod frame;
mod history;
mod key;
mod markdown;
mod orders;
mod prompt;
mod screen;
mod slash;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod tty;

/// What streams in is drawn no more often.
const BETWEEN_FRAMES: Duration = Duration::from_millis(33);
/// What was asked last is waited for so long when the person leaves.
const LAST_ERRANDS: Duration = Duration::from_secs(5);

type Errand<'a> = Pin<Box<dyn Future<Output = (Client, Told)> + 'a>>;

/// The shell around a [`Conversation`].
struct Talk<'a> {
    context: &'a Context,
    conversation: Conversation,
    stream: SessionStream,
    tty: Tty,
    screen: Screen,
    history: History,
    socket: PathBuf,
    /// Speaks to owd, one errand after the other; none while one is under way.
    owd: Option<Client>,
    queue: VecDeque<Ask>,
    errand: Option<Errand<'a>>,
    began: Instant,
    drawn: Instant,
    /// Columns and rows, as they were last told.
    size: (usize, usize),
    /// The session was made for this chat.
    is_new: bool,
}

/// Why the chat ends.
enum End {
    Left,
    TerminalGone,
}

pub(super) async fn talk(owd: &mut Client, chat: &Chat, context: &Context) -> Result<(), Failure> {
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(Failure::usage("this terminal cannot move its cursor (TERM=dumb)")
            .hint("say it with -p: owctl chat -p 'why does the build fail?'"));
    }
    let attachments = attach::files(&chat.attach)?;
    let is_new = chat.session.is_none() && !chat.go_on;
    let session = opening::open(owd, chat, context).await?;
    let history = History::in_file(context.paths()?.data_dir.join("chat-history"));
    let stream = owd.watch_session(&session.id, None).await?;
    let began = Instant::now();
    let mut conversation = Conversation::new(session, history.read(), Duration::ZERO);
    conversation.attachments = attachments;
    conversation.replied = models::default_name(context);
    let mut talk = Talk {
        context,
        conversation,
        stream,
        tty: Tty::open()?,
        screen: Screen::default(),
        history,
        socket: owd.socket().to_owned(),
        owd: None,
        queue: VecDeque::new(),
        errand: None,
        began,
        drawn: began,
        size: (0, 0),
        is_new,
    };
    let ended = talk.run().await;
    talk.close(ended).await
}

impl Talk<'_> {
    async fn run(&mut self) -> Result<End, Failure> {
        let failed = |why| Failure::io("cannot wait for signals", &why);
        let mut resized = signal(SignalKind::window_change()).map_err(failed)?;
        let mut ended = signal(SignalKind::terminate()).map_err(failed)?;
        let mut hung_up = signal(SignalKind::hangup()).map_err(failed)?;
        self.resize();
        let mut draws_at = Some(Instant::now());
        loop {
            if draws_at.is_some_and(|at| at <= Instant::now()) {
                draws_at = None;
                self.draw()?;
            }
            let wakes_at = self.conversation.wakes_at().map(|at| self.began + at);
            let next = [wakes_at, draws_at].into_iter().flatten().min();
            let input = tokio::select! {
                biased;
                _ = ended.recv() => return Ok(End::TerminalGone),
                _ = hung_up.recv() => return Ok(End::TerminalGone),
                reading = self.tty.next() => match reading {
                    Some(reading) => Input::Keys { keys: reading.keys, at: reading.at - self.began },
                    None => return Ok(End::TerminalGone),
                },
                (owd, told) = under_way(&mut self.errand) => {
                    self.errand = None;
                    self.owd = Some(owd);
                    Input::Told(told)
                }
                _ = resized.recv() => {
                    self.resize();
                    draws_at = Some(Instant::now());
                    continue;
                }
                event = self.stream.next() => Input::Event(event?),
                () = until(next) => Input::Tick,
            };
            let is_streamed = matches!(input, Input::Event(SessionEvent::Live { .. }));
            let effects = self.conversation.step(input, self.began.elapsed());
            for effect in effects {
                if self.perform(effect).await? {
                    return Ok(End::Left);
                }
            }
            self.next_errand();
            let at = if is_streamed { (self.drawn + BETWEEN_FRAMES).max(Instant::now()) } else { Instant::now() };
            draws_at = Some(draws_at.map_or(at, |before| before.min(at)));
        }
    }

    fn resize(&mut self) {
        self.size = Tty::size();
        let (columns, rows) = self.size;
        self.screen.resized();
        self.conversation.step(Input::Resized { columns, rows }, self.began.elapsed());
    }

    fn draw(&mut self) -> Result<(), Failure> {
        // The terminal may have changed already, and its signal be on the way.
        if Tty::size() != self.size {
            self.resize();
        }
        let from = self.began.elapsed();
        self.conversation.step(Input::Tick, from);
        let frame = self.conversation.frame();
        let bytes = self.screen.draw(frame, self.conversation.columns, self.context.out.paint);
        if !bytes.is_empty() {
            Tty::write(&bytes)?;
        }
        self.drawn = Instant::now();
        self.conversation.drawn(from, self.began.elapsed());
        Ok(())
    }

    /// True: the chat is over.
    async fn perform(&mut self, effect: Effect) -> Result<bool, Failure> {
        match effect {
            Effect::Ask(ask) => self.queue.push_back(ask),
            Effect::Leave => return Ok(true),
            Effect::Clear => {
                self.screen = Screen::default();
                Tty::write("\x1b[2J\x1b[H")?;
            }
            Effect::Bell => Tty::write("\x07")?,
            // A chat works without; the person is not held up for it.
            Effect::Remember(text) => drop(self.history.add(&text)),
            Effect::Edit { item, arguments } => {
                let edited = self.beside(|| edit(&arguments))?;
                let told = match edited {
                    Ok(arguments) => Told::Edited { item, arguments },
                    Err(why) => Told::NotEdited { item, why },
                };
                for effect in self.conversation.step(Input::Told(told), self.began.elapsed()) {
                    if let Effect::Ask(ask) = effect {
                        self.queue.push_back(ask);
                    }
                }
            }
            Effect::Suspend => self.beside(|| {
                // Where it cannot be stopped, it just goes on.
                let _stopped = kill_process(getpid(), Signal::TSTP);
            })?,
            Effect::Switch(id) => self.switch(&id).await?,
        }
        Ok(false)
    }

    /// Does something for which the terminal must be as others expect it.
    fn beside<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, Failure> {
        Tty::write(&self.screen.clear(self.conversation.columns))?;
        self.tty.give_back();
        let done = work();
        self.tty.take(TypedBefore::Dropped)?;
        self.resize();
        Ok(done)
    }

    fn next_errand(&mut self) {
        if self.errand.is_none()
            && let Some(ask) = self.queue.pop_front()
        {
            let owd = self.owd.take().unwrap_or_else(|| Client::new(&self.socket));
            let session = self.conversation.session.id.clone();
            self.errand = Some(Box::pin(errand::perform(owd, session, ask, self.context)));
        }
    }

    /// Goes on with another chat, if there is one.
    async fn switch(&mut self, id: &str) -> Result<(), Failure> {
        let mut owd = Client::new(&self.socket);
        let opened = async {
            let session = owd.session(id).await?;
            let stream = owd.watch_session(&session.id, None).await?;
            Ok::<_, ow_client::ClientError>((session, stream))
        };
        let (session, stream) = match opened.await {
            Ok(opened) => opened,
            Err(why) => {
                let why = Failure::from(why);
                self.conversation.error(&why.message, why.hint.as_deref());
                return Ok(());
            }
        };
        self.finish_errands().await;
        self.draw()?;
        self.leave_unused().await;
        self.conversation = self.conversation.succeeded_by(session);
        self.stream = stream;
        self.is_new = false;
        self.resize();
        Ok(())
    }

    /// What was asked is carried out, within a time.
    async fn finish_errands(&mut self) {
        let all = async {
            loop {
                self.next_errand();
                if self.errand.is_none() {
                    break;
                }
                let (owd, told) = under_way(&mut self.errand).await;
                self.errand = None;
                self.owd = Some(owd);
                self.conversation.step(Input::Told(told), self.began.elapsed());
            }
        };
        // An owd that does not answer keeps nobody here.
        drop(timeout(LAST_ERRANDS, all).await);
    }

    /// A chat in which nothing was said is no use to anyone.
    async fn leave_unused(&mut self) -> bool {
        let unused = self.is_new && !self.conversation.is_used();
        if unused {
            let mut owd = Client::new(&self.socket);
            drop(owd.remove_session(&self.conversation.session.id).await);
        }
        unused
    }

    async fn close(mut self, ended: Result<End, Failure>) -> Result<(), Failure> {
        if matches!(ended, Ok(End::Left)) {
            self.finish_errands().await;
        }
        let unused = matches!(ended, Ok(End::Left)) && self.leave_unused().await;
        let frame = self.conversation.last_frame(if unused { Farewell::None } else { Farewell::ComeBack });
        let bytes = self.screen.draw(frame, self.conversation.columns, self.context.out.paint);
        let written = Tty::write(&bytes);
        drop(self.tty);
        match ended? {
            End::Left => written,
            // Nobody is left to be told.
            End::TerminalGone => Ok(()),
        }
    }
}

async fn under_way(errand: &mut Option<Errand<'_>>) -> (Client, Told) {
    match errand {
        Some(errand) => errand.await,
        None => pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// The arguments as the person makes them in the editor; none: they were left as they are.
fn edit(arguments: &Value) -> Result<Option<Value>, Failure> {
    let before = serde_json::to_string_pretty(arguments).expect("a JSON value is written") + "\n";
    let draft = Draft::new(&before, ".json")?;
    let text = draft.edit()?;
    if text == before {
        return Ok(None);
    }
    match serde_json::from_str(&text) {
        Ok(edited @ Value::Object(_)) => Ok(Some(edited)),
        Ok(_) => Err("not a JSON object".to_owned()),
        Err(why) => Err(format!("not JSON: {why}")),
    }
    .map_err(|why| {
        Failure::usage(format!("the edited arguments are {why}; nothing was answered"))
            .hint(format!("your text is kept in {}", draft.keep().display()))
    })
}
