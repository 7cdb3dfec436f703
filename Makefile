# Each target is one line; what it does stands in the script or in Cargo.toml.
.PHONY: run test mutate sam-local test-sam test-upgrade deploy test-templates test-browser fuzz lint release sockets soak bench
.DEFAULT_GOAL := run

run: ## the whole system on http://127.0.0.1:3000 (PORT changes it), both sales loaded
	@exec infra/local/run.sh

test: ## every test, against Redis in every layout
	@exec infra/local/test.sh

bench: ## the figures to reach, measured here: ONLY=name for one, PEER=folder for the peer beside the whole system
	@exec infra/local/bench.sh

fuzz: ## a million mangled inputs (JARI_FUZZ_CASES changes it) for each reader of what arrives from outside
	JARI_FUZZ_CASES=$${JARI_FUZZ_CASES:-1000000} cargo test --workspace --test fuzz

sam-local: ## the deployed functions in containers, on http://127.0.0.1:3000 (PORT changes it)
	@exec infra/local/sam-local.sh

test-sam: ## every payload of events/ and a small sale against the functions as they are deployed
	@exec infra/local/test-sam.sh

deploy: ## says what it makes and costs, then deploys; ENVIRONMENT=dev or prod
	@exec infra/local/deploy.sh

test-upgrade: ## the release OLD (a revision) and this one on one sale at once
	@exec infra/local/test-upgrade.sh

test-templates: ## what a deployment's templates must hold, and their linters
	@exec infra/local/test-templates.sh

test-browser: ## the page and its client library in a real browser; pictures of every view under target/browser/
	@exec infra/local/test-browser.sh

mutate: ## deliberate faults in the Lua steps, of which none may survive the simulated sale
	@exec infra/local/mutate.sh

lint: ## format, clippy, tidy, shell
	@exec infra/local/lint.sh

release: ## target/release/jari
	cargo build --release -p cli

sockets: ## ten thousand open sockets on one server, some dying: minutes
	@exec infra/local/sockets.sh

soak: ## a sale under load and random faults: minutes (JARI_SOAK_MINUTES, 5) of a seed (JARI_SOAK_SEED)
	@exec infra/local/soak.sh
