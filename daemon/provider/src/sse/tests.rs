use proptest::prelude::*;

use super::*;

fn events(chunks: &[&[u8]]) -> Vec<(Option<String>, String)> {
    let mut sse = Sse::default();
    let mut found = vec![];
    for chunk in chunks {
        let pushed: Result<(), TooLong> = sse.push(chunk, &mut |event| {
            found.push((event.name, event.data));
            Ok(())
        });
        pushed.expect("no line is too long");
    }
    found.extend(sse.finish().map(|event| (event.name, event.data)));
    found
}

const STREAM: &str = "\u{feff}: a comment\r\nevent: one\ndata: Grüße\r\n\r\ndata:no space\rdata: second line\r\r\
                      id: 7\nretry: 10\n\nevent: empty\n\ndata: 你好 🦀\n\n\ndata\n\ndata: unfinished";

#[test]
fn each_form_of_line_end_and_field_is_read() {
    let named = |name: &str, data: &str| (Some(name.to_owned()), data.to_owned());
    let plain = |data: &str| (None, data.to_owned());
    assert_eq!(
        events(&[STREAM.as_bytes()]),
        [named("one", "Grüße"), plain("no space\nsecond line"), plain("你好 🦀"), plain(""), plain("unfinished"),]
    );
}

#[test]
fn a_line_without_an_end_is_a_fault() {
    let mut sse = Sse::default();
    let chunk = vec![b'a'; LONGEST_LINE / 2];
    let mut push = || sse.push::<TooLong>(&chunk, &mut |_| Ok(()));
    assert_eq!([push(), push(), push()], [Ok(()), Ok(()), Err(TooLong)]);
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(cuts in prop::collection::vec(0..STREAM.len(), 0..40)) {
        let mut cuts = cuts;
        cuts.extend([0, STREAM.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &STREAM.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(events(&chunks), events(&[STREAM.as_bytes()]));
    }
}
