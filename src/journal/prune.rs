//! Deletes old records, but keeps those that still matter.

use chrono::{DateTime, Utc};

use super::channel_state::prune_handled;
use super::rows::ms;
use super::{Journal, JournalError};

impl Journal {
    /// Deletes occurrences claimed before `before`, and messages delivered, questions answered, events recorded, forks ended and input
    /// handled before then. Keeps open occurrences, undelivered messages, reminders whose file is not dealt with (they would fire again), and each
    /// existing routine's last completed occurrence (later runs may read its answer). Returns how many occurrences it deleted.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn prune(&self, before: DateTime<Utc>) -> Result<usize, JournalError> {
        self.writer
            .commit(move |connection| {
                let before = ms(before);
                connection.execute(
                    "DELETE FROM session WHERE id IN
                       (SELECT id FROM occurrence WHERE claimed < ?1 AND outcome IS NOT NULL AND kind = 'session')",
                    [before],
                )?;
                let count = connection.execute(
                    "DELETE FROM occurrence
                     WHERE claimed < ?1 AND outcome IS NOT NULL AND (kind <> 'reminder' OR file_done)
                       AND number NOT IN
                         (SELECT max(number) FROM occurrence WHERE kind = 'routine' AND outcome = 'completed'
                            AND id IN (SELECT id FROM definition_seen WHERE gone IS NULL) GROUP BY id)",
                    [before],
                )?;
                connection.execute(
                    "DELETE FROM definition_text WHERE number NOT IN
                       (SELECT text FROM occurrence WHERE text IS NOT NULL)",
                    (),
                )?;
                connection.execute("DELETE FROM message WHERE delivered < ?1", [before])?;
                connection.execute("DELETE FROM question WHERE answered < ?1", [before])?;
                connection.execute("DELETE FROM definition_seen WHERE gone < ?1", [before])?;
                connection.execute("DELETE FROM event WHERE at < ?1", [before])?;
                connection.execute("DELETE FROM fork WHERE ended < ?1", [before])?;
                prune_handled(connection, before)?;
                Ok(count)
            })
            .await
    }
}
