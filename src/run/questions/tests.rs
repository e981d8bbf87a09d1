use std::path::PathBuf;

use chrono::{TimeDelta, TimeZone as _, Utc};
use tempfile::TempDir;

use super::*;
use crate::clock::Clock;
use crate::definition::{self, Background, Defaults, DefinitionId, Mode};
use crate::journal::testing;
use crate::policy::BgForkConfig;
use crate::run::prompt::tests::reminder;

/// A journal and the questions of test runs.
struct Fixture {
    _folder: TempDir,
    journal: Journal,
    questions: Questions,
}

impl Drop for Fixture {
    /// Closes the journal before its folder goes. A call that waits would otherwise record its end in a file that is gone,
    /// and the runtime waits for that.
    fn drop(&mut self) {
        futures::executor::block_on(self.journal.close());
    }
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let noon = Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap();
        let path: PathBuf = folder.path().join("journal.db");
        let journal = Journal::open(testing::place(&path), Clock::simulated(noon)).unwrap();
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let questions = Questions::new(Home::new(folder.path()), defaults, journal.clone(), Clock::system());
        Self { _folder: folder, questions, journal }
    }

    fn run(&self, run: &str, allowed: Option<&[&str]>, terms: AskTerms) -> Arc<RunQuestions> {
        let list = |texts: &[&str]| texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect::<Vec<_>>();
        let restrictions = BgForkConfig::new(Default::default(), true, allowed.map(list), None).unwrap();
        let restrictions = restrictions.asking(Some(list(&["Bash(git push *)"])), Some(terms));
        let mode = Mode::Background(Background { restrictions, ..Background::default() });
        let definition = Arc::new(reminder(mode, None));
        let (questions, timeout) = (self.questions.clone(), Duration::from_secs(1800));
        let (run, main_tools) = (RunId::new(run), list(&["Read"]));
        Arc::new(RunQuestions::new(questions, run, definition, timeout, main_tools, chrono_tz::UTC))
    }

    /// Asks in a separate task, and waits until the question is open.
    async fn asked(&self, run: &Arc<RunQuestions>, rule: &'static str) -> tokio::task::JoinHandle<Result<(), String>> {
        let before = *run.waiting_for_person().borrow();
        let known = self.questions.waiting().len();
        let asking = run.clone();
        let task = tokio::spawn(async move { asking.ask(rule, "Bash", "git push".into()).await });
        run.waiting_for_person().wait_for(|waiting_for_person| *waiting_for_person > before).await.unwrap();
        while self.questions.waiting().len() == known && !task.is_finished() {
            tokio::task::yield_now().await;
        }
        task
    }

    async fn answer(&self, number: i64, answer: Answer) -> Result<Question, Refusal> {
        self.questions.answer(number, answer, None, "phone").await
    }

    /// Returns the end of a question that has ended. Ending it a second time changes nothing.
    async fn end(&self, number: i64) -> Option<QuestionEnd> {
        let (question, ended) = self.journal.end_question(number, QuestionEnd::Deny, None, None).await.unwrap()?;
        assert!(!ended, "question {number} was open");
        question.answer
    }
}

const RULE: &str = "Bash(git push *)";

#[tokio::test(start_paused = true)]
async fn an_answer_wakes_whoever_waits_and_only_the_first_counts() {
    let fixture = Fixture::new();
    let run = fixture.run("1", Some(&[]), AskTerms::default());
    for (number, answer, allowed) in [(1, Answer::Once, true), (2, Answer::Deny, false)] {
        let waiting = fixture.asked(&run, RULE).await;
        assert_eq!(*run.waiting_for_person().borrow(), 1);
        assert_eq!(fixture.answer(number, answer).await.unwrap().answer, Some(answer.into()));
        assert_eq!(waiting.await.unwrap().is_ok(), allowed);
        assert_eq!(*run.waiting_for_person().borrow(), 0);
        let late = fixture.answer(number, Answer::Always).await.unwrap_err();
        assert!(late.reason.starts_with(&format!("question {number} is already closed: ")), "{late}");
    }
    assert!(fixture.answer(3, Answer::Once).await.unwrap_err().reason.contains("there is no question 3"));
    let waiting = fixture.asked(&run, RULE).await;
    let sentence = Some("Not today.".to_owned());
    fixture.questions.answer(3, Answer::Deny, sentence, "phone").await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err("denied by the person: Not today.".into()));
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_the_run_ends_the_same_questions_of_this_run_alone() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.run("1", None, AskTerms::default()), fixture.run("2", None, AskTerms::default()));
    let waiting = [
        fixture.asked(&one, RULE).await,
        fixture.asked(&one, RULE).await,
        fixture.asked(&one, "Bash(git *)").await,
        fixture.asked(&other, RULE).await,
    ];
    fixture.answer(2, Answer::Run).await.unwrap();
    let [first, second, wider, elsewhere] = waiting;
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(()), Ok(())));
    assert!(!wider.is_finished() && !elsewhere.is_finished());
    // This run asks no more about the rule; another one does.
    assert_eq!(one.ask(RULE, "Bash", "git push".into()).await, Ok(()));
    assert!(!one.is_granted("Bash(git *)") && !other.is_granted(RULE));
    assert_eq!(fixture.questions.waiting().len(), 2);
    one.close().await;
    assert_eq!(wider.await.unwrap(), Err("denied: the run has ended".into()));
    assert_eq!(fixture.end(3).await, Some(QuestionEnd::Ended));
    assert!(one.ask("Bash(git *)", "Bash", String::new()).await.is_err(), "a run that is over asks nothing");
    fixture.answer(4, Answer::Deny).await.unwrap();
    assert!(elsewhere.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn silence_is_what_the_file_says() {
    let minutes = |count: u64| Some(Duration::from_secs(60 * count));
    for (default, delivered_after, allowed, end) in [
        (AskDefault::Deny, minutes(0), false, QuestionEnd::SilenceDeny),
        (AskDefault::Allow, minutes(0), true, QuestionEnd::SilenceAllow),
        (AskDefault::Allow, minutes(4), true, QuestionEnd::SilenceAllow),
        // The person cannot object to what they have not been told, or a moment ago.
        (AskDefault::Allow, None, false, QuestionEnd::SilenceDeny),
        (AskDefault::Allow, minutes(6), false, QuestionEnd::SilenceDeny),
    ] {
        let fixture = Fixture::new();
        let run = fixture.run("1", Some(&[]), AskTerms { default, ..AskTerms::default() });
        let waiting = fixture.asked(&run, RULE).await;
        let message = fixture.journal.question(1).await.unwrap().unwrap().message.unwrap();
        fixture.journal.route(vec![(message, vec!["phone".into()])]).await.unwrap();
        if let Some(after) = delivered_after {
            tokio::time::sleep(after).await;
            fixture.journal.delivered("phone", &[message], None).await.unwrap();
        }
        // Nothing else happens before the deadline.
        assert_eq!(waiting.await.unwrap().is_ok(), allowed);
        assert_eq!(fixture.end(1).await, Some(end));
        // Silence decides only the one call.
        assert!(!run.is_granted(RULE));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_gone_takes_its_question_along() {
    let fixture = Fixture::new();
    let mut ended = fixture.journal.ended_questions();
    let run = fixture.run("1", Some(&[]), AskTerms::default());
    let waiting = fixture.asked(&run, RULE).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(*run.waiting_for_person().borrow(), 0);
    assert_eq!(fixture.end(1).await, Some(QuestionEnd::Ended));
    assert!(fixture.questions.waiting().is_empty());
    // Channels hear of it, so that its buttons disappear.
    assert_eq!(ended.try_recv().unwrap().answer, Some(QuestionEnd::Ended));

    let other = fixture.asked(&run, RULE).await;
    run.close().await;
    assert_eq!(ended.recv().await.unwrap().number, 2);
    assert!(other.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_run_asks_so_much_and_no_more() {
    let fixture = Fixture::new();
    let run = fixture.run("1", Some(&[]), AskTerms::default());
    let mut waiting = Vec::new();
    for _ in 0..MAX_OPEN_OF_RUN {
        waiting.push(fixture.asked(&run, RULE).await);
    }
    let refused = run.ask(RULE, "Bash", "git push".into()).await.unwrap_err();
    assert!(refused.contains("8 questions to the person are open already"), "{refused}");
    for (number, waiting) in (1..).zip(waiting) {
        fixture.answer(number, Answer::Once).await.unwrap();
        waiting.await.unwrap().unwrap();
    }
    for number in 9..=i64::from(MAX_OF_RUN) {
        let waiting = fixture.asked(&run, RULE).await;
        fixture.answer(number, Answer::Once).await.unwrap();
        waiting.await.unwrap().unwrap();
    }
    let refused = run.ask(RULE, "Bash", "git push".into()).await.unwrap_err();
    assert!(refused.contains("asked the person 30 times already"), "{refused}");
    let long = run.ask(RULE, "Bash", "x".repeat(LONGEST + 1)).await.unwrap_err();
    assert!(long.contains("too long to be shown"), "{long}");
    // Other runs may ask, up to the limit of all runs together.
    let mut others = Vec::new();
    for number in 0..MAX_OPEN / MAX_OPEN_OF_RUN {
        let other = fixture.run(&format!("other {number}"), Some(&[]), AskTerms::default());
        for _ in 0..MAX_OPEN_OF_RUN {
            others.push(fixture.asked(&other, RULE).await);
        }
    }
    let refused = fixture.run("2", Some(&[]), AskTerms::default()).ask(RULE, "Bash", String::new()).await.unwrap_err();
    assert!(refused.contains("64 questions"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_was_open_at_a_restart_is_denied() {
    let fixture = Fixture::new();
    let run = fixture.run("1", Some(&[]), AskTerms::default());
    let _waiting = fixture.asked(&run, RULE).await;
    let later = Questions { open: Arc::default(), ..fixture.questions.clone() };
    assert_eq!(later.end_left_open().await.unwrap(), 1);
    assert_eq!(later.end_left_open().await.unwrap(), 0);
    assert_eq!(fixture.end(1).await, Some(QuestionEnd::Restarted));
    assert!(!QuestionEnd::Restarted.allows());
}

#[test]
fn a_question_says_what_each_answer_is() {
    let asked = Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap();
    let mut question = Question {
        number: 3,
        run: RunId::new("1"),
        id: DefinitionId::new("tea"),
        tool: "Bash".into(),
        call: "x".repeat(FOLDED + 1),
        asked_rule: RULE.into(),
        always: None,
        message: None,
        asked,
        deadline: asked + TimeDelta::minutes(10),
        answer: None,
        sentence: None,
        answered: None,
        channel: None,
        start: false,
    };
    let definition = Arc::new(reminder(Mode::Background(Background::default()), None));
    let terms = AskTerms { channel: Some("phone".into()), ..AskTerms::default() };
    let zone = chrono_tz::Europe::Berlin;
    let message = Message { definition, terms, timeout: Duration::from_secs(1800), zone, change: None };
    let told = message.of(&question);
    assert_eq!(told.channel.as_deref(), Some("phone"));
    for part in [
        "[1001 characters are folded here: `ollim-bot questions` shows question 3 whole]",
        // The time is in the person's zone, not in the job's.
        "Without an answer by 13:10:00 (in 10m) it is denied",
        "answer 3 allow|run|deny",
    ] {
        assert!(told.text.contains(part), "{part}: {}", told.text);
    }
    let actions = |message: NewMessage| -> Vec<String> {
        message.rich.unwrap().buttons.into_iter().map(|button| button.action).collect()
    };
    assert_eq!(actions(told), ["answer:3:once", "answer:3:run", "answer:3:deny"]);
    question.always = Some(RULE.into());
    assert_eq!(actions(message.of(&question))[2], "answer:3:always");
    assert_eq!(question.end(), None);
    (question.answer, question.channel) = (Some(QuestionEnd::Deny), Some("phone".into()));
    question.answered = Some(asked + TimeDelta::seconds(12));
    assert_eq!(question.end().as_deref(), Some("denied, by phone, after 12s"));
}

#[tokio::test(start_paused = true)]
async fn a_rule_can_become_one_of_the_file_where_the_file_can_grant_it() {
    let fixture = Fixture::new();
    let can = |kind: Kind, list: &str, rule: &str| {
        let when = if kind == Kind::Routine { "cron: '@daily'" } else { "run_at: 2026-03-02T08:00Z" };
        let text = format!("---\n{when}\nbackground: true\n{list}ask_tools: ['{rule}']\n---\nPush.\n");
        let file = if kind == Kind::Routine { "routines/x.md" } else { "reminders/x.md" };
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let parsed = definition::parse(kind, file.as_ref(), text.as_bytes(), &defaults);
        let definition = Arc::new(parsed.definition.unwrap());
        let (main_tools, timeout) = (vec![ToolPattern::new("Read", None)], Duration::from_secs(1800));
        let questions = fixture.questions.clone();
        RunQuestions::new(questions, RunId::new("1"), definition, timeout, main_tools, chrono_tz::UTC)
            .can_be_saved_as_rule(rule)
    };
    let allows = "allowed_tools: []\n";
    // A file with an allowlist can take any rule; otherwise the main session must have the tool.
    assert!(can(Kind::Routine, allows, RULE));
    assert!(!can(Kind::Routine, "", RULE));
    assert!(can(Kind::Routine, "", "Read(notes/**)"));
    // The file of a reminder is gone before the next run.
    assert!(!can(Kind::Reminder, allows, RULE));
}
