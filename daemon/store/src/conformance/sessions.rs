use ow_model::{
    AgentSpec, Answer, Attachment, BlobHash, Fact, Failure, Input, Mode, Outcome, Person, RunState, SessionId, Source,
    Span, TurnOutcome, Wake,
};

use super::Place;
use super::support::{Any, anna, begin, call, end, later, name, noon, page, park, save, spec, take};
use crate::{
    NewSession, PageRequest, RestRequest, Retention, RunFilter, SessionError, SessionFilter, StoreError, TakenRun,
    TaskError, TaskFilter,
};

pub(crate) fn input(text: &str) -> Input {
    Input { text: text.into(), attachments: vec![], source: Source::Person { person: Person("anna".into()) } }
}

pub(crate) fn chat() -> NewSession {
    let mut chat = spec("unnamed", vec![]);
    chat.agent = Some(AgentSpec { model: Some("stub:small".into()), ..AgentSpec::default() });
    NewSession { spec: chat, title: None, by: "anna".into() }
}

pub(super) async fn create(store: &Any) -> SessionId {
    store.create_session(&chat(), noon()).await.expect("created")
}

pub(super) async fn say(store: &Any, session: SessionId, text: &str) -> u64 {
    store.say(session, &input(text), None, noon()).await.expect("said").number
}

async fn take_chats(store: &Any) -> Vec<TakenRun> {
    store.take_chats(100, noon()).await.expect("taken")
}

async fn waiting(store: &Any, session: SessionId) -> Vec<(u64, String)> {
    let inputs = store.inputs(session).await.expect("read");
    inputs.into_iter().map(|(number, input)| (number, input.text)).collect()
}

async fn state(store: &Any, session: SessionId) -> RunState {
    store.run(session).await.expect("read").expect("there").state
}

pub(super) fn heard(number: u64, text: &str) -> Fact {
    Fact::Input { number: Some(number), input: input(text) }
}

pub(super) fn turn_ended() -> Fact {
    Fact::TurnEnded { outcome: TurnOutcome::Completed }
}

pub(super) fn rest(session: SessionId, next: u32, facts: Vec<Fact>) -> RestRequest {
    RestRequest { session, next, facts, ran_for_ms: 5 }
}

pub async fn a_message_wakes_a_chat_and_enters_its_history_once(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    assert_eq!(state(&store, session).await, RunState::Idle);
    assert_eq!(take_chats(&store).await.len(), 0);
    let before = store.inputs_said();
    assert_eq!(say(&store, session, "hello").await, 1);
    assert!(store.inputs_said() > before, "who has looked must look again");
    assert_eq!(state(&store, session).await, RunState::Queued { not_before: None, answered: true });
    drop(store);
    let store = place.open().await;
    assert_eq!(waiting(&store, session).await, [(1, "hello".into())], "what was taken is kept");
    let (taken, said) = (take_chats(&store).await, store.inputs_said());
    assert_eq!(taken.iter().map(|taken| taken.run.id).collect::<Vec<_>>(), [session]);
    store.append(session, 0, &[heard(1, "hello")], None, noon()).await.expect("appended");
    assert_eq!(waiting(&store, session).await, []);
    assert_eq!(store.inputs_said(), said, "nothing was said since");
    let again = store.append(session, 1, &[heard(1, "hello")], None, noon()).await;
    assert!(matches!(again, Err(StoreError::Failed { .. })), "it is in the history already: {again:?}");
    store.idle_run(&rest(session, 1, vec![turn_ended()]), noon()).await.expect("idle");
    assert_eq!(state(&store, session).await, RunState::Idle);
    let kept: Vec<_> = store.journal_from(session, 1).await.expect("read").into_iter().map(|fact| fact.seq).collect();
    assert_eq!(kept, [1], "the journal is read from where one stopped");
}

pub async fn a_message_during_a_turn_waits_for_its_end(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    say(&store, session, "first").await;
    take_chats(&store).await;
    assert_eq!(say(&store, session, "second").await, 2);
    assert_eq!(state(&store, session).await, RunState::Running);
    store.idle_run(&rest(session, 0, vec![heard(1, "first"), turn_ended()]), noon()).await.expect("rested");
    assert_eq!(state(&store, session).await, RunState::Queued { not_before: None, answered: true });
    assert_eq!(waiting(&store, session).await, [(2, "second".into())]);
    assert_eq!(take_chats(&store).await.len(), 1);
}

pub async fn a_message_with_a_known_key_is_one_message(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    for (new, text) in [(true, "once"), (false, "again")] {
        let sent = store.say(session, &input(text), Some("k"), noon()).await.expect("said");
        assert_eq!((sent.number, sent.new), (1, new));
    }
    take_chats(&store).await;
    store.idle_run(&rest(session, 0, vec![heard(1, "once")]), noon()).await.expect("rested");
    let late = store.say(session, &input("late"), Some("k"), noon()).await.expect("said");
    assert_eq!((late.number, late.new), (1, false), "also once it is in the history");
    assert_eq!(state(&store, session).await, RunState::Idle);
    assert_eq!(say(&store, session, "other").await, 2);
}

pub async fn a_message_waits_behind_an_open_question(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    say(&store, session, "do it").await;
    let taken = take_chats(&store).await.remove(0);
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    say(&store, session, "and then").await;
    assert!(matches!(state(&store, session).await, RunState::Parked { .. }));
    store.resolve(item, &Answer::Once, &anna(), noon()).await.expect("resolved");
    assert_eq!(take(&store, noon()).await.len(), 0, "a chat takes no worker of tasks");
    assert_eq!(take_chats(&store).await[0].run.id, session);
    assert_eq!(waiting(&store, session).await.len(), 2);
}

pub async fn chats_and_tasks_have_workers_of_their_own(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let job = store.run_now(&name("job"), "anna", None, noon()).await.expect("queued");
    let first = create(&store).await;
    let second = create(&store).await;
    store.say(second, &input("early"), None, noon()).await.expect("said");
    store.say(first, &input("late"), None, later(noon(), 1)).await.expect("said");
    let times = store.wake_times().await.expect("read");
    assert!(times.ready && times.ready_chats);
    let taken = take(&store, noon()).await;
    assert_eq!(taken.iter().map(|taken| taken.run.id).collect::<Vec<_>>(), [job]);
    assert!(!store.wake_times().await.expect("read").ready);
    let one = store.take_chats(1, later(noon(), 2)).await.expect("taken");
    assert_eq!(one[0].run.id, second, "who has waited longest goes first");
    assert_eq!(take_chats(&store).await[0].run.id, first);
    assert!(!store.wake_times().await.expect("read").ready_chats);
}

pub async fn chats_are_hidden_from_what_is_done_to_tasks(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    let hidden = store.run(session).await.expect("read").expect("there").task_name;
    assert!(hidden.as_str().starts_with("chat-") && session.to_string().starts_with(&hidden.as_str()[5..]));
    let lists = |chats: bool| {
        let store = &store;
        async move {
            let tasks = store.tasks(&TaskFilter { chats, ..TaskFilter::default() }, &page(10)).await.expect("read");
            let runs = store.runs(&RunFilter { chats, ..RunFilter::default() }, &page(10)).await.expect("read");
            (tasks.rows.len(), runs.rows.len())
        }
    };
    assert_eq!((lists(false).await, lists(true).await), ((0, 0), (1, 1)));
    let stats = store.stats().await.expect("read");
    assert_eq!((stats.tasks, stats.runs_open, stats.sessions), (0, 0, 1));
    let refused = [
        store.delete_task(&hidden, noon()).await.map(|_| ()),
        store.run_now(&hidden, "anna", None, noon()).await.map(|_| ()),
        store.pause_task(&hidden, ow_model::PauseReason::Person, noon()).await,
        store
            .save_task(&spec(hidden.as_str(), vec![]), ow_model::TaskSource::Store, "", None, noon())
            .await
            .map(|_| ()),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(TaskError::Refused { .. })), "{refused:?}");
    }
}

pub async fn sessions_are_listed_by_their_last_activity(place: &impl Place) {
    let store = place.open().await;
    let (old, new) = (create(&store).await, create(&store).await);
    let long = format!("\n  {}", "word ".repeat(40));
    store.say(old, &input(&long), None, later(noon(), 9)).await.expect("said");
    let first = store.sessions(&SessionFilter::default(), &page(1)).await.expect("read");
    assert_eq!(first.rows[0].run.id, old, "something was said to it last");
    assert_eq!(
        first.rows[0].title.as_deref().map(|title| title.chars().count()),
        Some(61),
        "{:?}",
        first.rows[0].title
    );
    let next = PageRequest { after: first.next, limit: 1 };
    let second = store.sessions(&SessionFilter::default(), &next).await.expect("read");
    assert_eq!((second.rows[0].run.id, &second.next), (new, &None));
    store.rename_session(new, "the new one", noon()).await.expect("renamed");
    take_chats(&store).await;
    let set = vec![
        Fact::Input { number: Some(1), input: input(&long) },
        Fact::ModeSet { mode: Mode::Auto },
        Fact::ModelSet { model: "stub:large".into() },
    ];
    store.idle_run(&rest(old, 0, set), noon()).await.expect("rested");
    let row = store.session(old).await.expect("read").expect("there");
    assert_eq!((row.mode, row.model.as_deref(), row.waiting, row.length), (Mode::Auto, Some("stub:large"), 0, 3));
    let row = store.session(new).await.expect("read").expect("there");
    assert_eq!((row.title.as_deref(), row.model.as_deref()), (Some("the new one"), Some("stub:small")));
}

pub async fn a_session_sleeps_until_its_time_or_a_message(place: &impl Place) {
    let store = place.open().await;
    let until = later(noon(), 600);
    let (timed, event) = (create(&store).await, create(&store).await);
    for (session, until) in [(timed, Some(until)), (event, None)] {
        say(&store, session, "sleep").await;
        take_chats(&store).await;
        let facts = vec![heard(1, "sleep"), Fact::Slept { until, on: vec![], note: "wake".into() }];
        store.sleep_run(&rest(session, 0, facts), until, noon()).await.expect("asleep");
    }
    assert_eq!(store.wake_times().await.expect("read").runs, Some(until));
    assert_eq!(take_chats(&store).await.len(), 0);
    assert_eq!(store.take_chats(9, until).await.expect("taken")[0].run.id, timed);
    store.sleep_run(&rest(timed, 2, vec![]), Some(later(until, 600)), until).await.expect("asleep");
    for session in [timed, event] {
        say(&store, session, "wake up").await;
    }
    assert_eq!(take_chats(&store).await.len(), 2, "a message wakes both");
}

/// Puts a new session to sleep until one of these.
async fn asleep(store: &Any, on: Vec<Wake>) -> SessionId {
    let session = create(store).await;
    say(store, session, "sleep").await;
    take_chats(store).await;
    let facts = vec![heard(1, "sleep"), Fact::Slept { until: None, on, note: String::new() }];
    store.sleep_run(&rest(session, 0, facts), None, noon()).await.expect("asleep");
    session
}

pub async fn a_session_is_woken_by_the_event_that_it_waits_for_and_by_nothing_of_its_own(place: &impl Place) {
    let store = place.open().await;
    let event = |kind: &str| vec![Wake::Event(kind.into())];
    // To sleep makes one of these itself.
    let own = asleep(&store, event("run.idle")).await;
    let other = asleep(&store, event("run.ended")).await;
    let woken = take_chats(&store).await;
    assert_eq!(woken.len(), 1, "another has gone to sleep");
    assert_eq!(woken[0].run.id, own);
    drop(store);
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    assert_eq!(store.inputs(other).await.expect("read"), []);
    store.end_run(&super::support::ending(taken.run.id, 0, Outcome::Succeeded), noon()).await.expect("ended");
    let inputs = store.inputs(other).await.expect("read");
    let [(1 | 2, Input { text, source: Source::Event { kind }, .. })] = &inputs[..] else { panic!("{inputs:?}") };
    assert!(kind == "run.ended" && text.contains(&taken.run.id.to_string()), "{text}");
    let again = begin(&store, "job", noon()).await;
    store.end_run(&super::support::ending(again.run.id, 0, Outcome::Succeeded), noon()).await.expect("ended");
    assert_eq!(store.inputs(other).await.expect("read").len(), 1, "it is woken once");
}

pub async fn who_waits_for_jobs_is_known_until_it_wakes(place: &impl Place) {
    let store = place.open().await;
    let waits = asleep(&store, vec![Wake::Job("j1".into()), Wake::Event("run.ended".into())]).await;
    let said = asleep(&store, vec![Wake::Job("j7".into())]).await;
    say(&store, said, "wake up").await;
    let taken = take_chats(&store).await.remove(0);
    let next = u32::try_from(taken.journal.len()).expect("short");
    store.append(said, next, &[heard(2, "wake up")], None, noon()).await.expect("heard");
    drop(store);
    let store = place.open().await;
    assert_eq!(store.jobs_awaited().await.expect("read"), [(waits, "j1".into())]);
}

pub async fn a_sleeping_run_is_under_way(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![]);
    (job.agent, job.overlap) = (Some(AgentSpec::default()), ow_model::Overlap::Queue);
    save(&store, &job, noon()).await;
    let taken = begin(&store, "job", noon()).await;
    for until in [None, Some(later(noon(), 600))] {
        let next = u32::try_from(store.journal(taken.run.id).await.expect("read").len()).expect("short");
        let said = store.inputs(taken.run.id).await.expect("read").into_iter();
        let mut facts: Vec<_> = said.map(|(number, input)| Fact::Input { number: Some(number), input }).collect();
        facts.push(Fact::Slept { until, on: vec![], note: String::new() });
        store.sleep_run(&rest(taken.run.id, next, facts), until, noon()).await.expect("asleep");
        drop(store.run_now(&name("job"), "anna", None, noon()).await);
        assert_eq!(take(&store, noon()).await.len(), 0, "the next run waits for the end of this one");
        store.say(taken.run.id, &input("wake up"), None, noon()).await.expect("said");
        assert_eq!(take(&store, noon()).await[0].run.id, taken.run.id);
    }
    let next = u32::try_from(store.journal(taken.run.id).await.expect("read").len()).expect("short");
    let request = crate::EndRequest {
        run: taken.run.id,
        next,
        facts: vec![],
        outcome: Outcome::Succeeded,
        ran_for_ms: 1,
        retry_at: None,
    };
    store.end_run(&request, noon()).await.expect("ended");
    assert_eq!(take(&store, noon()).await.len(), 1);
}

pub async fn what_a_person_sets_is_written_where_no_worker_is(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    let set = [Fact::ModeSet { mode: Mode::Edit }];
    assert!(store.note_in_session(session, &set, None, noon()).await.expect("written"));
    say(&store, session, "x").await;
    let taken = take_chats(&store).await.remove(0);
    assert_eq!(taken.journal.len(), 1);
    assert!(!store.note_in_session(session, &set, None, noon()).await.expect("refused"), "its worker writes");
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    let interrupted = [Fact::TurnInterrupted { by: "anna".into(), partial: None }];
    assert!(store.note_in_session(session, &interrupted, Some("interrupted"), noon()).await.expect("written"));
    let item = store.item(item).await.expect("read").expect("there");
    assert_eq!(item.state.word(), "withdrawn");
    assert_eq!(take_chats(&store).await.len(), 1, "it goes on, to close its turn");
}

pub async fn only_an_open_agent_is_spoken_to(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("steps", vec![]), noon()).await;
    let steps = begin(&store, "steps", noon()).await;
    let refused = store.say(steps.run.id, &input("x"), None, noon()).await;
    assert!(matches!(refused, Err(SessionError::NoAgent { .. })), "{refused:?}");
    end(&store, &steps, Outcome::Succeeded, noon()).await;
    let refused = store.say(steps.run.id, &input("x"), None, noon()).await;
    assert!(matches!(refused, Err(SessionError::Ended { .. })), "{refused:?}");
    let refused = store.say(SessionId::from_bytes([9; 10]), &input("x"), None, noon()).await;
    assert!(matches!(refused, Err(SessionError::Unknown { .. })), "{refused:?}");
}

pub async fn a_removed_session_is_over(place: &impl Place) {
    let store = place.open().await;
    let (still, running) = (create(&store).await, create(&store).await);
    say(&store, running, "x").await;
    take_chats(&store).await;
    assert!(!store.remove_session(still, "removed by anna", noon()).await.expect("removed"));
    assert!(store.remove_session(running, "removed by anna", noon()).await.expect("removed"), "it must be stopped");
    assert_eq!(waiting(&store, running).await, []);
    store.idle_run(&rest(running, 0, vec![]), noon()).await.expect("left");
    for session in [still, running] {
        let outcome = Outcome::Cancelled { why: "removed by anna".into() };
        assert_eq!(state(&store, session).await, RunState::Ended(ow_model::EndedRun { outcome }));
        let refused = store.say(session, &input("x"), None, noon()).await;
        assert!(matches!(refused, Err(SessionError::Ended { .. })), "{refused:?}");
    }
    let listed = |removed| {
        let store = &store;
        async move { store.sessions(&SessionFilter { removed }, &page(9)).await.expect("read").rows.len() }
    };
    assert_eq!((listed(false).await, listed(true).await), (0, 2));
    create(&store).await;
    let long_after = later(noon(), 10_000_000);
    let day = Span::from_secs(86_400);
    let retention = Retention { runs: day, items: day, slots: day, event_keys: day, stream: 100, step: 10 };
    while store.retain(&retention, long_after).await.expect("retained") {}
    assert_eq!(listed(true).await, 1, "retention lets go of what was removed, and of nothing else");
    assert_eq!(store.journal(still).await.expect("read"), []);
}

pub async fn a_chat_goes_on_in_the_next_life(place: &impl Place) {
    let store = place.open().await;
    let (middle, idle) = (create(&store).await, create(&store).await);
    say(&store, middle, "x").await;
    take_chats(&store).await;
    store.append(middle, 0, &[heard(1, "x")], None, noon()).await.expect("appended");
    drop(store);
    let store = place.open().await;
    assert_eq!(store.begin_life("two", noon()).await.expect("begun").interrupted, 1);
    assert_eq!(take_chats(&store).await.iter().map(|taken| taken.run.id).collect::<Vec<_>>(), [middle]);
    assert_eq!(state(&store, idle).await, RunState::Idle);
}

pub async fn the_kill_switch_holds_chats_too(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    store.pause_all("anna", noon()).await.expect("paused");
    say(&store, session, "x").await;
    assert_eq!(take_chats(&store).await.len(), 0);
    assert!(!store.wake_times().await.expect("read").ready_chats);
    store.resume_all(noon()).await.expect("resumed");
    assert_eq!(take_chats(&store).await.len(), 1);
}

pub async fn a_failed_turn_pauses_no_chat(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    for (number, next) in [(1, 0), (2, 2), (3, 4)] {
        assert_eq!(say(&store, session, "x").await, number);
        take_chats(&store).await;
        let outcome = TurnOutcome::Failed { failure: Failure::Loop, message: "round and round".into() };
        let facts = vec![heard(number, "x"), Fact::TurnEnded { outcome }];
        store.idle_run(&rest(session, next, facts), noon()).await.expect("rested");
    }
    assert_eq!(state(&store, session).await, RunState::Idle);
    assert_eq!(store.stats().await.expect("read").items_pending, 0, "who was there knows it");
}

pub async fn watchers_of_a_session_are_told_to_look(place: &impl Place) {
    let store = place.open().await;
    let (session, other) = (create(&store).await, create(&store).await);
    let mut changes = store.session_changes(session);
    say(&store, other, "x").await;
    assert!(!changes.has_changed().expect("open"), "that was another session");
    say(&store, session, "x").await;
    assert!(changes.has_changed().expect("open"));
    changes.mark_unchanged();
    take_chats(&store).await;
    store.append(session, 0, &[heard(1, "x")], None, noon()).await.expect("appended");
    assert!(changes.has_changed().expect("open"));
}

pub async fn attachments_are_kept_with_their_session(place: &impl Place) {
    let store = place.open().await;
    let session = create(&store).await;
    let bytes = b"%PDF-1.7 of a kind";
    let hash = store.put_blob(bytes).await.expect("kept");
    let attached = Attachment { name: "a.pdf".into(), media_type: "application/pdf".into(), bytes: 18, hash };
    let said = Input { attachments: vec![attached], ..input("read this") };
    store.say(session, &said, None, noon()).await.expect("said");
    take_chats(&store).await;
    let facts = vec![Fact::Input { number: Some(1), input: said }];
    store.idle_run(&rest(session, 0, facts), noon()).await.expect("rested");
    let day = Span::from_secs(86_400);
    let retention = Retention { runs: day, items: day, slots: day, event_keys: day, stream: 100, step: 10 };
    while store.retain(&retention, later(noon(), 10_000_000)).await.expect("retained") {}
    assert_eq!(store.blob(BlobHash::of(bytes)).await.expect("read").as_deref(), Some(bytes.as_slice()));
}
