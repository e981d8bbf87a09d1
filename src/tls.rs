//! The cryptography of rustls: chosen once for the whole process.

use std::fs;
use std::path::Path;
use std::sync::Once;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Installs our provider, unless one is installed already.
pub fn choose_provider() {
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| {
        // An error means that one is installed already.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Returns a TLS configuration that accepts only valid certificates of the called host, from an authority in the file `root` (PEM) or,
/// without one, an authority that browsers know.
///
/// # Errors
/// If the file is invalid, a sentence that says why.
pub fn verifying(root: Option<&Path>) -> Result<ClientConfig, String> {
    choose_provider();
    let mut roots = RootCertStore::empty();
    match root {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            let wrong = |why: String| format!("{}: {why}", file.display());
            let pem = fs::read(file).map_err(|error| wrong(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("it holds no certificate".to_owned()));
            }
        }
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
