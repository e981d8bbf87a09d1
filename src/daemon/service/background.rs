//! The tasks beside the dispatcher, which run until the service ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::task::JoinSet;

use super::opened_home::OpenedHome;
use super::parts::LoadedDefinitions;
use crate::channel::{self, ButtonRemovals, Channel, Inbound};
use crate::daemon::control::Control;
use crate::daemon::handlers::Handlers;
use crate::daemon::incoming::{ExecuteWords, ServiceInbound};
use crate::daemon::problems::Problems;
use crate::daemon::settings::{CurrentSettings, SettingsTargets};
use crate::daemon::shutdown::{EndConditions, Hangups, Shutdown};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::{heartbeat, idle_client, runtime_files, waiting};
use crate::definition;
use crate::heartbeat::Heartbeats;
use crate::journal::Question;
use crate::run::forks::Forks;
use crate::run::tokens::Tokens;
use crate::run::watching::FolderWatches;
use crate::schedule::Schedule;
use crate::web::Listener;
use crate::webhooks::Webhooks;

/// Interval between two checks of forks.
const FORKS: Duration = Duration::from_secs(60);

/// The parts of all background tasks.
pub(super) struct Background {
    pub(super) read: LoadedDefinitions,
    pub(super) handlers: Handlers,
    pub(super) control: Control,
    pub(super) tokens: Tokens,
    /// The listener of the page, or `None` if there is none yet.
    pub(super) listener: Option<Listener>,
    pub(super) problems: Problems,
    pub(super) in_force: SettingsTargets,
    pub(super) channels: BTreeMap<String, Arc<dyn Channel>>,
    pub(super) webhooks: Webhooks,
    pub(super) watching: FolderWatches,
    pub(super) hearts: Heartbeats,
    pub(super) settings: CurrentSettings,
}

/// The parts that only a lasting service needs. A service for a single run does not listen.
struct LongRunningParts {
    hearing: Arc<ServiceInbound>,
    channels: BTreeMap<String, Arc<dyn Channel>>,
    webhooks: Webhooks,
    watching: FolderWatches,
    hearts: Heartbeats,
    settings: CurrentSettings,
}

impl Background {
    /// Starts all tasks. Dropping the set ends them.
    pub(super) fn begin(
        self,
        opened: OpenedHome,
        until: EndConditions,
        execute: ExecuteWords,
        of_service: bool,
    ) -> JoinSet<()> {
        let LoadedDefinitions { schedule, definitions, pushed, watch, problems_of_files } = self.read;
        let (handlers, journal) = (self.handlers, opened.journal.clone());
        let mut tasks = JoinSet::new();
        let web = handlers.page.web(handlers.clone(), definitions.clone(), &journal, self.tokens);
        tasks.spawn(handlers.page.clone().serve(self.listener, web, journal.clone()));
        tasks.spawn(forward_answers(handlers.journal.ended_questions(), schedule.clone()));
        tasks.spawn(handlers.questions.clone().follow());
        tasks.spawn(handlers.questions.clone().end_silent_starts());
        if of_service {
            let hearing = Arc::new(ServiceInbound {
                handlers: handlers.clone(),
                channels: self.channels.clone(),
                execute,
                told: Mutex::default(),
                removals: ButtonRemovals::default(),
            });
            let (webhooks, watching, hearts) = (self.webhooks, self.watching, self.hearts);
            let (channels, settings) = (self.channels, self.settings.clone());
            LongRunningParts { hearing, channels, webhooks, watching, hearts, settings }.begin(&mut tasks, &handlers);
            tasks.spawn(waiting::tell_of_faults(opened.messages, journal.clone()));
            if let Some(files) = opened.shared_files {
                tasks.spawn(files.follow());
            }
            tasks.spawn(pushed.follow());
            tasks.spawn(idle_client::end_when_idle(
                handlers.idle_client.clone(),
                handlers.main.clone(),
                opened.home.clone(),
                self.settings.clone(),
            ));
        }
        let (swept, now) = (opened.home.clone(), opened.clock.now());
        tasks.spawn_blocking(move || {
            if let Err(error) = definition::sweep(&swept, now) {
                tracing::warn!(%error, "what killed writers may have left in the folders of definitions was not removed");
            }
        });
        if let Some(events) = opened.events {
            tasks.spawn(async move { events.follow().await });
        }
        tasks.spawn(definitions.follow(watch));
        tasks.spawn(self.problems.follow(problems_of_files));
        let removed = self.control.removed();
        tasks.spawn(self.control.serve(Arc::new(handlers)));
        tasks.spawn(runtime_files::watch(opened.lock, opened.home, schedule.clone(), journal.fault(), removed));
        let supervisor = opened.supervisor;
        tasks.spawn(supervisor.clone().send_heartbeats(schedule.clone()));
        tasks.spawn(supervisor.clone().status(schedule.clone(), self.in_force.app.clone()));
        let ending = Shutdown {
            signals: opened.signals,
            until,
            schedule,
            clock: opened.clock,
            settings: self.settings,
            supervisor: supervisor.clone(),
        };
        tasks.spawn(ending.watch(serve_hangups(opened.hangups, self.in_force, supervisor)));
        tasks
    }
}

impl LongRunningParts {
    fn begin(self, tasks: &mut JoinSet<()>, handlers: &Handlers) {
        let Handlers { journal, main, forks, schedule, .. } = handlers;
        for (name, channel) in self.channels {
            let (inbound, journal) = (Inbound::new(name, self.hearing.clone()), journal.clone());
            tasks.spawn(async move {
                journal.until_main().await;
                channel::listen(&*channel, inbound).await;
            });
        }
        let (journal, main, forks) = (journal.clone(), main.clone(), forks.clone());
        let trouble = journal.fault();
        tasks.spawn(async move {
            if !journal.is_main() {
                journal.until_main().await;
                if let Err(error) = main.reload().await {
                    tracing::error!(%error, "the conversation of the host that had it before is not known here");
                }
            }
            monitor_forks(forks).await;
        });
        tasks.spawn(self.watching.run());
        if let Some(address) = self.settings.borrow().webhooks.clone() {
            tasks.spawn(self.webhooks.serve(address));
        }
        tasks.spawn(heartbeat::beat(self.hearts, schedule.clone(), self.settings, trouble));
        let (hearing, ended) = (Arc::clone(&self.hearing), handlers.journal.ended_questions());
        tasks.spawn(async move { hearing.show_answers(ended).await });
        let (hearing, ended) = (self.hearing, handlers.journal.ended_forks());
        tasks.spawn(async move { hearing.show_ended_forks(ended).await });
    }
}

/// Reports readiness when the schedule is loaded, then reloads the settings at each SIGHUP. Never returns.
async fn serve_hangups(mut hangups: Hangups, in_force: SettingsTargets, supervisor: Supervisor) {
    // The schedule may end before it is loaded, which ends this wait too.
    let _ended = in_force.schedule.activity().wait_for(|now| now.loaded).await.is_err();
    supervisor.ready("nothing is going").await;
    loop {
        hangups.next().await;
        supervisor.reloading().await;
        let said = in_force.reread().await;
        supervisor.ready(&said).await;
    }
}

/// Asks about idle forks, and ends those that stay idle. Never returns.
async fn monitor_forks(forks: Forks) {
    loop {
        tokio::time::sleep(FORKS).await;
        if let Err(error) = forks.end_idle().await {
            tracing::warn!(%error, "the person's forks could not be looked after");
        }
    }
}

/// Notifies the schedule of each answer, since a run may wait for it. Never returns.
async fn forward_answers(mut answers: broadcast::Receiver<Question>, schedule: Schedule) {
    loop {
        match answers.recv().await {
            Ok(question) => schedule.answered(Some(&question)),
            Err(broadcast::error::RecvError::Lagged(_)) => schedule.answered(None),
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}
