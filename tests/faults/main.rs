//! What is promised under faults: servers out of reach, slow or restarted, processes killed, connections cut. The table of
//! it: docs/reliability.md.
#![cfg(test)]

mod proxy;
