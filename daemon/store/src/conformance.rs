//! What every [`Store`](crate::Store) must do: one suite, run by each implementation in its own tests.
//!
//! [`store_conformance!`](crate::store_conformance) makes one test a rule from a [`Place`] that can open its store
//! again and again. Dropping a store stands for a crash: whatever was answered must be there afterwards.

#![expect(clippy::missing_panics_doc, reason = "a rule that does not hold panics, as a test does")]

mod audit;
mod inbox;
mod intake;
mod lists;
mod mailboxes;
mod outbox;
mod race;
mod retention;
mod runs;
mod scenarios;
mod sessions;
mod slots;
pub(crate) mod support;
mod tasks;
mod threads;

use std::future::Future;
use std::sync::Arc;

use crate::Store;

pub use audit::*;
pub use inbox::*;
pub use intake::*;
pub use lists::*;
pub use mailboxes::*;
pub use outbox::*;
pub use race::*;
pub use retention::*;
pub use runs::*;
pub use scenarios::*;
pub use sessions::*;
pub use slots::*;
pub use tasks::*;
pub use threads::*;

/// Where one store lives. A fresh place is empty.
pub trait Place: Send + Sync {
    /// Opens the store; the one opened before has been dropped.
    fn open(&self) -> impl Future<Output = Arc<dyn Store>> + Send;
}

/// Makes a test of each rule of the suite; the expression gives a fresh [`Place`] each time.
#[macro_export]
macro_rules! store_conformance {
    ($place:expr) => {
        $crate::store_conformance! { $place =>
            // Tasks
            an_equal_definition_changes_nothing
            a_stale_revision_is_refused
            a_task_belongs_to_where_it_was_made
            an_instant_in_the_past_is_refused
            a_circle_of_after_is_refused
            a_deleted_task_leaves_records_and_nothing_else
            a_returning_file_resumes_its_task_unless_a_person_paused_it
            a_run_keeps_the_definition_it_started_with
            what_a_watch_has_seen_outlives_a_restart
            tasks_of_files_are_named
            // Slots and events
            each_slot_fires_once_whatever_is_dropped
            an_overdue_task_is_accounted_for_before_its_edit
            a_pause_is_one_skipped_range
            a_clock_set_back_fires_nothing_twice
            an_event_is_accepted_once
            an_unwanted_event_has_its_record_and_is_new_once_it_is_wanted
            an_event_that_is_another_one_again_is_skipped_with_a_record
            events_wait_for_a_running_run_and_go_to_the_next_together
            events_outlive_a_restart_and_a_pause
            startup_fires_once_a_life
            the_end_of_a_task_is_an_event_of_those_after_it
            slots_are_found_by_overlap
            a_hundred_due_tasks_are_claimed_in_steps
            scheduler_scenarios_hold
            // Mailboxes
            how_far_a_mailbox_was_read_outlives_a_restart
            // Runs
            answered_runs_go_before_new_ones
            what_becomes_ready_is_handed_to_free_hands_by_the_same_fact
            hands_are_given_what_they_can_hold_and_nothing_once_taken_back
            hands_are_given_nothing_while_all_is_paused_and_nothing_that_needs_the_network
            a_fact_that_is_undone_hands_nothing_out
            of_many_that_become_ready_at_once_some_are_handed_out_and_none_is_forgotten
            a_run_waits_for_its_group_and_its_task
            a_run_waits_for_the_network
            a_late_run_is_missed
            a_start_deadline_counts_from_when_a_slot_is_due
            a_stale_worker_is_fenced
            what_was_running_goes_on_in_the_next_life
            the_kill_switch_starts_nothing
            a_failed_run_is_told_and_equal_ones_fold
            the_notice_of_a_failed_run_lists_what_it_had_made
            a_refused_address_is_counted_and_told_once_a_run
            a_task_that_keeps_failing_pauses_itself
            a_retry_waits_for_its_time_and_keeps_its_events
            a_run_by_hand_respects_overlap
            a_run_that_must_stop_is_told_once
            a_cancelled_run_withdraws_its_questions
            // Sessions
            a_message_wakes_a_chat_and_enters_its_history_once
            a_message_during_a_turn_waits_for_its_end
            a_message_with_a_known_key_is_one_message
            a_message_waits_behind_an_open_question
            chats_and_tasks_have_workers_of_their_own
            chats_are_hidden_from_what_is_done_to_tasks
            sessions_are_listed_by_their_last_activity
            a_session_sleeps_until_its_time_or_a_message
            a_session_is_woken_by_the_event_that_it_waits_for_and_by_nothing_of_its_own
            who_waits_for_jobs_is_known_until_it_wakes
            a_sleeping_run_is_under_way
            what_a_person_sets_is_written_where_no_worker_is
            only_an_open_agent_is_spoken_to
            a_removed_session_is_over
            a_chat_goes_on_in_the_next_life
            the_kill_switch_holds_chats_too
            a_failed_turn_pauses_no_chat
            watchers_of_a_session_are_told_to_look
            attachments_are_kept_with_their_session
            // Audit
            each_commit_about_a_call_is_one_entry_of_the_audit
            the_audit_says_who_answered_what
            the_audit_outlives_what_it_speaks_of
            a_fact_that_is_refused_leaves_nothing_in_the_audit
            the_audit_is_read_in_pages_and_by_run_and_task
            // Inbox
            a_parked_run_goes_on_when_all_is_answered
            an_equal_question_of_a_run_is_the_same_item
            a_run_holds_its_slot_by_what_it_asks_however_often_it_is_parked
            an_answer_must_fit_the_question
            allowing_for_the_task_makes_its_rule
            an_expired_item_takes_no_answer
            reminders_come_after_twice_the_time
            a_withdrawn_item_sends_its_run_on
            a_notice_with_a_known_key_is_one_item
            two_answers_have_one_winner
            a_rule_is_used_as_often_as_it_may
            // Outbox
            where_nothing_is_bound_nothing_is_told
            an_item_is_told_of_where_its_inbox_is_bound
            what_is_asked_together_is_one_message_a_binding
            a_delivery_that_nobody_recorded_is_handed_out_again_under_its_name
            a_delivery_that_failed_waits_and_holds_up_its_own_binding_alone
            what_was_answered_meanwhile_is_not_told_and_who_was_told_hears_the_end
            what_was_under_way_when_it_was_answered_is_told_of_if_it_arrived
            a_known_reply_is_one_message_and_stands_for_the_notice_of_the_end
            what_is_given_up_is_told_once_by_other_bindings
            an_unanswered_item_comes_to_the_next_inbox
            a_digest_gathers_what_comes_before_it_is_due
            a_digest_tells_of_an_item_once
            a_message_keeps_its_name_though_less_is_left_to_tell
            time_to_answer_is_counted_from_when_it_is_told
            of_what_waited_together_only_the_latest_is_told
            who_may_have_been_told_is_told_how_it_ended
            what_is_too_long_to_stand_beside_others_has_a_message_of_its_own
            a_message_tells_of_ten_items_at_most
            a_message_is_found_by_its_name
            a_conversation_knows_what_it_was_told_of
            an_item_that_is_handed_on_is_in_both_inboxes
            who_was_told_of_an_item_is_told_that_it_was_handed_on
            an_answer_and_what_its_sender_is_told_are_one_fact
            what_a_chat_asks_is_told_elsewhere_a_minute_later
            what_was_told_goes_with_its_item
            // Threads
            a_thread_is_one_session_however_often_it_is_said
            a_thread_that_is_told_is_closed_until_more_is_said
            a_thread_is_not_closed_over_what_was_just_said
            a_thread_whose_session_is_over_gets_another
            // Intake
            what_was_taken_in_waits_until_it_is_worked_off
            what_is_sent_again_is_taken_in_once_for_90_days
            // Lists, stream and care
            lists_page_by_cursor
            an_id_is_found_by_its_beginning
            the_stream_tells_each_fact_once_it_is_durable
            wake_times_name_the_earliest
            retention_keeps_marks_keys_and_decisions
            kept_bytes_outlive_a_restart_and_go_with_their_run
            kept_bytes_that_an_event_names_wait_with_it
        }
    };
    ($place:expr => $($rule:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                $crate::conformance::$rule(&$place).await;
            }
        )*
    };
}
