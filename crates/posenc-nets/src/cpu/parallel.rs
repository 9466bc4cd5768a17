//! Parallel loops on threads that live for one step.
//!
//! The result of an item does not depend on its thread, so the number of threads does not change the bits of a
//! result.

use std::sync::Mutex;

/// Splits `items` into `threads` contiguous chunks and processes them in parallel.
pub fn in_chunks<T: Send>(threads: usize, items: &mut [T], work: impl Fn(&mut [T]) + Sync) {
    let each = items.len().div_ceil(threads.max(1)).max(1);
    if items.len() <= each {
        return work(items);
    }
    std::thread::scope(|scope| {
        let mut chunks = items.chunks_mut(each);
        let own = chunks.next();
        for chunk in chunks {
            scope.spawn(|| work(chunk));
        }
        if let Some(own) = own {
            work(own);
        }
    });
}

/// Processes all items with one thread per scratch; an idle thread takes the next item.
pub fn for_each<S: Send, T: Send>(
    scratch: &mut [S],
    items: &mut [T],
    work: impl Fn(&mut S, &mut T) + Sync,
) {
    let helpers = scratch.len().min(items.len());
    let Some((own, others)) = scratch.split_first_mut() else {
        return;
    };
    if helpers <= 1 {
        return items.iter_mut().for_each(|item| work(own, item));
    }
    let queue = Mutex::new(items.iter_mut());
    let next = || queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    let drain = |scratch: &mut S| {
        while let Some(item) = next() {
            work(scratch, item);
        }
    };
    std::thread::scope(|scope| {
        for scratch in &mut others[..helpers - 1] {
            scope.spawn(|| drain(scratch));
        }
        drain(own);
    });
}
