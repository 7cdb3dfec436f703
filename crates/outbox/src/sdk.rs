//! How clients of AWS are configured, wherever one is made.

use aws_config::{BehaviorVersion, ConfigLoader};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;

/// Region, credentials and endpoints as the AWS SDK finds them; TLS by the provider that Redis is reached with.
pub fn sdk() -> ConfigLoader {
    let client = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
    aws_config::defaults(BehaviorVersion::latest()).http_client(client.build_https())
}
