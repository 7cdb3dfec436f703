//! openapi.yaml, and holding answers against it: status, content type, headers and body of each must be described.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::app::Answer;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.yaml");
    let text = std::fs::read_to_string(path).expect("openapi.yaml");
    serde_saphyr::from_str(&text).expect("openapi.yaml is YAML")
});

/// Compiled schemas by the place they stand at in the document.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// The whole document.
pub fn document() -> &'static Value {
    &DOCUMENT
}

/// Fails the test unless openapi.yaml describes this answer to a request for `method path`.
pub fn check(method: &str, path: &str, answer: &Answer) {
    let (place, response) = response(method, path, answer.status);
    let at = format!("{method} {path} → {} (openapi.yaml: {place}): {}", answer.status, answer.text);
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let required = resolved(header)["required"] == true;
        assert!(!required || answer.header(&name.to_lowercase()).is_some(), "{name} is missing: {at}");
    }
    let content_type = answer.header("content-type").map(|value| value.split(';').next().unwrap_or(value));
    let Some(content) = response.get("content").and_then(Value::as_object) else {
        assert!(answer.text.is_empty(), "a body that is not described: {at}");
        return;
    };
    let content_type = content_type.unwrap_or_else(|| panic!("no content type: {at}"));
    let media = content.get(content_type).unwrap_or_else(|| panic!("{content_type} is not described: {at}"));
    if content_type == "application/json" {
        let validator = validator(&format!("{place} {content_type}"), &media["schema"]);
        let errors: Vec<String> = validator
            .iter_errors(&answer.json)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}\n{at}", errors.join("\n"));
    }
}

/// The description of a status, and where it stands.
fn response(method: &str, path: &str, status: u16) -> (String, &'static Value) {
    let method = method.to_lowercase();
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let template = paths.keys().find(|template| matches(template, path));
    let described =
        template.and_then(|template| paths[template].get(&method).map(|operation| (template, operation)));
    let Some((template, operation)) = described else {
        let shared = match (template, method.as_str()) {
            (None, _) => "NotFound",
            (Some(_), "options") => "Options",
            (Some(_), _) => "MethodNotAllowed",
        };
        return (shared.to_owned(), &DOCUMENT["components"]["responses"][shared]);
    };
    let found = operation["responses"].get(status.to_string());
    let found = found.unwrap_or_else(|| panic!("{method} {template}: {status} is not described"));
    (format!("{method} {template} {status}"), resolved(found))
}

/// Whether a path is one of a template's, whose last segment may be a parameter.
fn matches(template: &str, path: &str) -> bool {
    match template.split_once('{') {
        None => template == path,
        Some((head, _)) => {
            path.strip_prefix(head).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
        }
    }
}

/// What a reference points to, or the value itself.
fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.trim_start_matches('#');
            DOCUMENT.pointer(pointer).unwrap_or_else(|| panic!("openapi.yaml has no {reference}"))
        }
        None => value,
    }
}

fn validator(place: &str, schema: &Value) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().expect("no test fails while it holds the lock");
    let compiled = validators.entry(place.to_owned()).or_insert_with(|| {
        let root = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": DOCUMENT["components"],
            "allOf": [schema],
        });
        Arc::new(jsonschema::validator_for(&root).unwrap_or_else(|error| panic!("{place}: {error}")))
    });
    Arc::clone(compiled)
}
