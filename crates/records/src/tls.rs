//! Encryption of connections, by the one provider of the process.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::RecordsError;

/// What makes connections encrypted.
pub(crate) struct Tls(RootCertStore);

impl Tls {
    /// For connections in the clear: nobody is trusted.
    pub(crate) fn none() -> Self {
        Self(RootCertStore::empty())
    }

    /// Trusts these certificates (PEM), or the system's.
    pub(crate) fn trusting(ca: Option<&str>) -> Result<Self, RecordsError> {
        let mut roots = RootCertStore::empty();
        match ca {
            Some(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                    let certificate = certificate.map_err(|error| unreadable(&error))?;
                    roots.add(certificate).map_err(|error| unreadable(&error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(RecordsError::Certificates("there is none".to_owned()));
        }
        Ok(Self(roots))
    }

    pub(crate) fn connector(self) -> Result<MakeRustlsConnect, RecordsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unreadable(&error))?
            .with_root_certificates(self.0)
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> RecordsError {
    RecordsError::Certificates(error.to_string())
}
