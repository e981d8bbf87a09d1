//! The cryptography of rustls: a program chooses it, once, for the whole process.

use std::sync::Once;

/// Chooses ours, where none is chosen yet.
pub fn choose_provider() {
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| {
        // An error says that it is chosen already.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
    });
}
