//! Mails as they come are read against one waiting item: nothing panics, and what approves is the approver's, names the
//! item, and was not written by a machine.
#![no_main]

use std::sync::LazyLock;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use ow_reply::{Context, Explained, Kind, Message, Pending, Phrases, Proof, Received, State, explain};

const ITEM: &str = "3f9c2a71b4de";
const APPROVER: &str = "alex@example.com";

static PHRASES: LazyLock<Phrases> = LazyLock::new(Phrases::default);

fn explained(mail: &[u8], proof: Proof<'_>) -> Explained {
    let kind = Kind::Approval;
    let pending = [Pending { id: ITEM.into(), kind: Kind::Approval, state: State::Pending }];
    let approvers = [APPROVER.to_owned()];
    let now = Timestamp::from_second(1_772_526_000).expect("an instant");
    let context = Context { pending: &pending, kind: &kind, approvers: &approvers, proof, now, phrases: &PHRASES };
    explain(Message::Mail(mail), &context)
}

fuzz_target!(|mail: &[u8]| {
    explained(mail, Proof::Relay("mx.example.net"));
    if explained(mail, Proof::Given).decision != "approve" {
        return;
    }
    let received = Received::read(mail).expect("what approves is a mail");
    assert_eq!(received.item().as_deref(), Some(ITEM));
    assert_eq!(received.sender().map(|sender| sender.address.as_str()), Some(APPROVER));
    let start = mail.len() - ow_reply::without_envelope(mail).len();
    let automatic = [&mail[..start], b"Auto-Submitted: auto-replied\r\n", &mail[start..]].concat();
    assert_ne!(explained(&automatic, Proof::Given).decision, "approve", "a machine approves");
});
