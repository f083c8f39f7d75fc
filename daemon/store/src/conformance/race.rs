use ow_model::{Answer, Answered, Fact};

use tokio::task::JoinSet;

use super::Place;
use super::support::{anna, begin, bert, call, deny, noon, park, save, spec, take};
use crate::ResolveError;

const ROUNDS: usize = 200;

/// appr-01: two people answer in the same instant.
pub async fn two_answers_have_one_winner(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    for round in 0..ROUNDS {
        let taken = begin(&store, "job", noon()).await;
        let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
        let mut people = JoinSet::new();
        for (answer, by) in [(Answer::Once, anna()), (deny(), bert())] {
            let store = store.clone();
            people.spawn(async move { store.resolve(item, &answer, &by, noon()).await });
        }
        let mut answers = people.join_all().await;
        let (Some(one), Some(other)) = (answers.pop(), answers.pop()) else { panic!("two people answered") };
        let (winner, loser) = match (one, other) {
            (Ok(winner), Err(loser)) | (Err(loser), Ok(winner)) => (winner, loser),
            both => panic!("round {round}: {both:?}"),
        };
        let ResolveError::Already { decision, by, at, .. } = loser else { panic!("round {round}: {loser:?}") };
        assert_eq!((by, at), (winner.resolution.by.clone(), winner.resolution.at));
        assert_eq!(decision, winner.resolution.answer.word());
        let again = take(&store, noon()).await.remove(0);
        let answers: Vec<_> = again
            .journal
            .iter()
            .filter_map(|recorded| match &recorded.fact {
                Fact::Answered { answered: Answered::Resolved(resolution), .. } => Some(resolution),
                _ => None,
            })
            .collect();
        assert_eq!(answers, [&winner.resolution], "round {round}");
        super::support::end(&store, &again, ow_model::Outcome::Succeeded, noon()).await;
    }
}
