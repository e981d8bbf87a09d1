//! Occurrences of webhooks. Each is claimed for a delivery before the sender gets an answer.

use std::sync::Arc;

use chrono::DateTime;
use tokio::sync::oneshot;

use super::super::command::{Accepted, DeliverError, Delivery};
use super::Dispatcher;
use crate::definition::DefinitionId;
use crate::journal::{Claim, DeliveryClaim, NewClaim, Occasion};

/// Maximum number of waiting occurrences of one webhook, since they are held in memory.
const WAITING: usize = 200;

/// The caller that waits for the answer to a delivery.
type Sender = oneshot::Sender<Result<Accepted, DeliverError>>;

impl Dispatcher {
    /// Has the journal claim an occurrence for the delivery, unless it has one already.
    pub(super) fn deliver(&mut self, id: &DefinitionId, delivery: Delivery, reply: Sender) {
        let since = delivery.since;
        let claim = match self.claim_delivery(id, delivery) {
            Ok(claim) => claim,
            // The caller may have gone away.
            Err(refusal) => return drop(reply.send(Err(refusal))),
        };
        let begun = vec![claim.clone()];
        self.begin_claims(&begun);
        let (journal, launcher, asked) = (self.journal.clone(), Arc::clone(&self.launcher), self.asked());
        let runs = self.starts_processes(&claim);
        let task = async move {
            if runs {
                launcher.get_ready();
            }
            fail_point!(BeforeDelivery);
            let delivered = journal.claim_delivery(claim, since).await;
            fail_point!(Delivered);
            let answer = match &delivered {
                Ok(DeliveryClaim::New(_, Claim::Claimed(run))) => Ok(Accepted { run: run.clone(), is_repeated: false }),
                Ok(DeliveryClaim::Again(run)) => Ok(Accepted { run: run.clone(), is_repeated: true }),
                // The same commit chose a free time, so this cannot happen.
                Ok(DeliveryClaim::New(_, Claim::AlreadyRecorded(_))) => Err(DeliverError::Stopping),
                Err(error) => Err(DeliverError::Journal(error.clone())),
            };
            // The caller may have gone away. The delivery runs all the same.
            let _gone = reply.send(answer);
            delivered
        };
        self.spawn(task, move |this, delivered| {
            this.end_claims(&begun);
            match delivered? {
                DeliveryClaim::New(claim, answer) => this.on_claimed(vec![*claim], vec![answer], asked, None),
                DeliveryClaim::Again(run) => tracing::debug!(%run, "it was delivered again"),
            }
            Ok(())
        });
    }

    fn claim_delivery(&self, id: &DefinitionId, delivery: Delivery) -> Result<NewClaim, DeliverError> {
        if self.phase.is_stopping() {
            return Err(DeliverError::Stopping);
        }
        let not_found = || DeliverError::NotFound(id.clone());
        let definition = self.definitions.definition(id).filter(|definition| definition.hook().is_some());
        let definition = definition.ok_or_else(not_found)?;
        if !definition.enabled || self.definitions.is_paused(id) || self.gate.paused.is_some() {
            return Err(DeliverError::Paused);
        }
        if self.active.of(id).count() >= WAITING {
            return Err(DeliverError::Full);
        }
        let now = self.clock.now();
        // The journal counts in milliseconds.
        let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
        let purpose = self.purpose_here(definition);
        let claim = self.new_claim(id, now, purpose).ok_or_else(not_found)?;
        let Delivery { key, payload, .. } = delivery;
        Ok(NewClaim { occasion: Some(Occasion::Delivered { key, payload }), ..claim })
    }
}
