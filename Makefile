# Each target is one line; what it does stands in the script or in Cargo.toml.
.PHONY: run test mutate lint release
.DEFAULT_GOAL := run

run: ## the whole system on http://127.0.0.1:3000 (PORT changes it), both sales loaded
	@exec infra/local/run.sh

test: ## every test, against a single Redis and a cluster
	@exec infra/local/test.sh

mutate: ## deliberate faults in the Lua steps, of which none may survive the simulated sale
	@exec infra/local/mutate.sh

lint: ## format, clippy, tidy, shell
	@exec infra/local/lint.sh

release: ## target/release/jari
	cargo build --release -p cli
