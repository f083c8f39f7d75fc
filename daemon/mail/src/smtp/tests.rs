use std::collections::VecDeque;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;

/// What the server answers to a command instead of yes; an empty answer: it goes without a word.
type Instead = (&'static str, &'static str);

/// A server on loopback, with what it hears: `open`, the verbs, and `text` for a mail's text, each with the number of the
/// connection. The connections differ in what they answer.
async fn server(connections: Vec<Vec<Instead>>) -> (Host, UnboundedReceiver<(usize, String)>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tell, heard) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut talks = JoinSet::new();
        for (number, instead) in connections.into_iter().enumerate() {
            let (stream, _) = listener.accept().await.expect("a connection");
            talks.spawn(talk(stream, number, instead.into(), tell.clone()));
        }
        talks.join_all().await;
    });
    (Host { name: "127.0.0.1".into(), port, security: Security::None, ca: None }, heard, tasks)
}

async fn talk(
    stream: TcpStream,
    number: usize,
    mut instead: VecDeque<Instead>,
    tell: UnboundedSender<(usize, String)>,
) {
    let mut lines = BufReader::new(stream);
    let mut next = "220 here".to_owned();
    let mut verb = "open".to_owned();
    loop {
        tell.send((number, verb.clone())).expect("somebody listens");
        if let Some((_, answer)) = instead.pop_front_if(|(to, _)| *to == verb) {
            next = answer.to_owned();
        }
        if next.is_empty() || lines.write_all(format!("{next}\r\n").as_bytes()).await.is_err() || verb == "QUIT" {
            return;
        }
        let mut line = String::new();
        if lines.read_line(&mut line).await.unwrap_or(0) == 0 {
            tell.send((number, "gone".into())).expect("somebody listens");
            return;
        }
        let is_text = verb == "DATA" && next.starts_with("354");
        while is_text && line.trim_end() != "." {
            line.clear();
            if lines.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
        }
        verb = if is_text { "text".into() } else { line.trim_end().split([' ', ':']).next().unwrap_or("").into() };
        next = if verb == "DATA" { "354 go on".into() } else { "250 yes".into() };
    }
}

fn mail() -> Message {
    let (from, to) = ("owd@example.net".parse().expect("from"), "ada@example.org".parse().expect("to"));
    Message::builder().from(from).to(to).subject("s").body("text".to_owned()).expect("a mail")
}

/// Sends so many mails one after the other, and gives what became of each and what the server heard.
async fn sent(count: usize, connections: Vec<Vec<Instead>>) -> (Vec<Result<(), Fault>>, Vec<(usize, String)>) {
    let (host, mut heard, tasks) = server(connections).await;
    let kept = Kept::default();
    let mut done = vec![];
    for _ in 0..count {
        done.push(Server { host: &host, login: None, own: "example.net" }.send(&mail(), &kept).await);
    }
    drop(kept);
    drop(tasks);
    let mut all = vec![];
    while let Ok(one) = heard.try_recv() {
        all.push(one);
    }
    (done, all)
}

fn count(heard: &[(usize, String)], verb: &str) -> usize {
    heard.iter().filter(|(_, one)| one == verb).count()
}

#[tokio::test]
async fn mails_that_follow_at_once_go_over_one_connection() {
    let (done, heard) = sent(3, vec![vec![]]).await;
    assert_eq!(done, [Ok(()), Ok(()), Ok(())]);
    assert_eq!((count(&heard, "open"), count(&heard, "EHLO"), count(&heard, "text")), (1, 1, 3));
}

#[tokio::test]
async fn a_kept_connection_that_has_ended_or_had_enough_costs_no_mail() {
    for refusal in [("MAIL", ""), ("MAIL", "421 too many mails"), ("RCPT", "451 not here"), ("DATA", "554 no more")] {
        // Each answer is given when its turn has come: the refusal meets the second mail.
        let (done, heard) = sent(2, vec![vec![("text", "250 taken"), refusal], vec![]]).await;
        assert_eq!(done, [Ok(()), Ok(())], "{refusal:?}");
        assert_eq!((count(&heard, "open"), count(&heard, "text")), (2, 2), "{refusal:?}: {heard:?}");
    }
}

#[tokio::test]
async fn a_mail_whose_end_was_not_answered_is_lost_and_not_sent_again() {
    // Over a new connection, and over one that was kept.
    for before in [0, 1] {
        let mut answers = vec![("text", "250 taken"); before];
        answers.push(("text", ""));
        let (done, heard) = sent(before + 1, vec![answers, vec![]]).await;
        assert!(matches!(done[before], Err(Fault::Lost { .. })), "{done:?}");
        assert_eq!((count(&heard, "open"), count(&heard, "text")), (1, before + 1), "{heard:?}");
    }
}

#[tokio::test]
async fn what_broke_before_the_text_has_not_gone() {
    for at in ["MAIL", "RCPT", "DATA"] {
        let (done, heard) = sent(1, vec![vec![(at, "")]]).await;
        assert!(matches!(done[0], Err(Fault::Later { .. })), "{at}: {done:?}");
        assert_eq!(count(&heard, "text"), 0);
    }
    let (done, _) = sent(1, vec![vec![("RCPT", "550 no such person")]]).await;
    assert!(matches!(&done[0], Err(Fault::Never { why }) if why.contains("no such person")), "{done:?}");
    let (done, _) = sent(1, vec![vec![("text", "452 full")]]).await;
    assert!(matches!(&done[0], Err(Fault::Later { why, .. }) if why.contains("full")), "{done:?}");
}

#[tokio::test]
async fn a_connection_that_nobody_needs_says_goodbye() {
    let (host, mut heard, tasks) = server(vec![vec![]]).await;
    let kept = Kept { stay: Duration::from_millis(10), ..Kept::default() };
    Server { host: &host, login: None, own: "example.net" }.send(&mail(), &kept).await.expect("sent");
    let quits = async { while heard.recv().await.expect("the server is there").1 != "QUIT" {} };
    timeout(Duration::from_mins(1), quits).await.expect("it goes in time");
    tasks.join_all().await;
}
