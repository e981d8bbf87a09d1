//! Work on many things, done on as many threads as are worth it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// So many things are taken at a time: for these, starting a thread costs more than it saves.
const PART: usize = 32;

/// What `work` makes of each of `all`, in their order, without those of which it makes nothing. Each thread has a state of
/// its own, which `start` makes.
pub(crate) fn filter_map<T: Sync, S, R: Send>(
    all: &[T],
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> Option<R> + Sync,
) -> Vec<R> {
    let parts: Vec<&[T]> = all.chunks(PART).collect();
    let next = AtomicUsize::new(0);
    // Takes parts until there are none: some take longer than others.
    let some = || {
        let mut state = start();
        let mut done: Vec<(usize, Vec<R>)> = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let Some(things) = parts.get(part) else { return done };
            done.push((part, things.iter().filter_map(|thing| work(&mut state, thing)).collect()));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8).min(parts.len());
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(part, _)| *part);
    done.into_iter().flat_map(|(_, part)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn does_all_of_them_once_and_in_their_order(many in 0usize..300) {
            let all: Vec<usize> = (0..many).collect();
            let odd = filter_map(&all, || 0, |done, thing| {
                *done += 1;
                (thing % 2 == 1).then_some(*thing)
            });
            prop_assert_eq!(odd, all.iter().copied().filter(|thing| thing % 2 == 1).collect::<Vec<_>>());
        }
    }
}
