//! SQS, as moto's server speaks it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use aws_smithy_http_client::Builder;

use crate::given;
use crate::process::{Folder, Recipe, Server};

/// The region that queues are made in.
const REGION: &str = "ap-northeast-2";

/// A running SQS. It slows down with the number of messages that wait in a queue: keep them to some hundreds.
#[derive(Debug)]
pub struct Sqs {
    endpoint: String,
    /// None when the environment named it.
    _server: Option<Server>,
}

impl Sqs {
    /// An SQS for the caller alone.
    pub fn start() -> Self {
        let (server, (), endpoint) = Server::start("sqs", |_| (recipe(), ()), |folder, ()| endpoint(folder));
        Self { endpoint, _server: Some(server) }
    }

    /// The SQS that all tests of this process share; each makes its own [`Sqs::queue`]. `JARI_TEST_SQS_URL` names a
    /// running one.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Sqs> = OnceLock::new();
        SHARED.get_or_init(|| match given("JARI_TEST_SQS_URL") {
            Some(endpoint) => Self { endpoint, _server: None },
            None => Self::start(),
        })
    }

    /// What `AWS_ENDPOINT_URL_SQS` has to be: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What the SDK of a child process reads besides the endpoint.
    pub(crate) fn environment() -> [(&'static str, &'static str); 4] {
        [
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]
    }

    /// A client of this SQS.
    pub fn client(&self) -> Client {
        Self::client_at(self.endpoint())
    }

    /// A client of an SQS that is reached there.
    pub fn client_at(endpoint: &str) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new(REGION))
            .endpoint_url(endpoint)
            .http_client(Builder::new().build_http())
            .credentials_provider(Credentials::new("test", "test", None, None, "test"));
        Client::from_conf(config.build())
    }

    /// The URL of a new, empty queue. Its own name begins with `name`: letters, digits, `-` and `_`.
    pub async fn queue(&self, name: &str) -> String {
        let name = format!("{name}-{:016x}", fastrand::u64(..));
        let made = self.client().create_queue().queue_name(name).send().await.expect("SQS makes a queue");
        made.queue_url.expect("a new queue has a URL")
    }

    /// The URLs of a new, empty queue and of that of its dead letters: what was received five times goes there.
    pub async fn queue_with_dead_letters(&self, name: &str) -> (String, String) {
        let dead_letters = self.queue(&format!("{name}-dead-letters")).await;
        let client = self.client();
        let asked = client.get_queue_attributes().queue_url(&dead_letters);
        let told = asked.attribute_names(QueueAttributeName::QueueArn).send().await.expect("SQS answers");
        let arn = told.attributes.and_then(|mut told| told.remove(&QueueAttributeName::QueueArn));
        let arn = arn.expect("a queue has an ARN");
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"5"}}"#);
        let url = self.queue(name).await;
        let set = client.set_queue_attributes().queue_url(&url);
        let set = set.attributes(QueueAttributeName::RedrivePolicy, policy).send().await;
        set.expect("SQS takes a redrive policy");
        (url, dead_letters)
    }
}

/// Port 0 lets the server choose, so no one can take the port first.
fn recipe() -> Recipe {
    let server = venv().join("bin/moto_server");
    assert!(server.is_file(), "{} is missing; infra/local/setup.sh test makes it", server.display());
    let mut command = Command::new(server);
    command.args(["-H", "127.0.0.1", "-p", "0"]);
    Recipe { command, stop_signal: "KILL" }
}

/// The Python environment that `infra/local/setup.sh test` makes.
pub fn venv() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/venv");
    std::env::var_os("JARI_VENV").map_or_else(default, PathBuf::from)
}

/// The server names its address once it listens there.
fn endpoint(folder: &Folder) -> Option<String> {
    let log = folder.log();
    let rest = log.split_once("Running on ")?.1;
    Some(rest.split_once('\n')?.0.trim_end().to_owned())
}
