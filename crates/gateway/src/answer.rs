//! What every HTTP function does around its handler: origin, route, method, CORS, JSONP, language, panics.

use std::any::Any;
use std::borrow::Cow;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use http::Method;
use lambda_http::request::RequestContext;
use lambda_http::{Body, Request, RequestExt, Response};

use crate::failure::Failure;
use crate::request::{self, Gate};
use crate::response::{self, Answer};
use crate::routes::{self, Call, Missing};
use crate::{cors, language::Language};

/// Answers a request to `function`: finds its route, lets `handle` do what the route asks for, and writes what
/// came of it. Never fails and never panics: a panic in `handle` is logged and answered as `INTERNAL_ERROR`.
pub async fn answer<H, F>(gate: &Gate, function: &str, request: &Request, handle: H) -> Response<Body>
where
    H: FnOnce(Call) -> F,
    F: Future<Output = Answer>,
{
    let (call, callback) = match admit(gate, function, request) {
        Ok(admitted) => admitted,
        Err(Turned::Away(failure)) => return write(gate, request, Err(failure), None),
        Err(Turned::Preflight { allowed }) => return cors::preflight(gate, request, &allowed),
    };
    let handled = AssertUnwindSafe(async { handle(call).await }).catch_unwind().await;
    let answer = handled.unwrap_or_else(|panic| Err(Failure::internal(&words_of(&*panic))));
    write(gate, request, answer, callback.as_deref())
}

/// Who does not reach the handler.
enum Turned {
    Away(Failure),
    Preflight { allowed: Vec<&'static str> },
}

impl<T: Into<Failure>> From<T> for Turned {
    fn from(failure: T) -> Self {
        Self::Away(failure.into())
    }
}

fn admit<'a>(
    gate: &Gate,
    function: &str,
    request: &'a Request,
) -> Result<(Call, Option<Cow<'a, str>>), Turned> {
    request::prove_origin(gate, request)?;
    let route = match routes::of(request) {
        Ok((route, _)) if route.function == function => route,
        // The route is another function's: this one has nothing there.
        Ok(_) => return Err(Missing::NotFound.into()),
        Err(Missing::MethodNotAllowed { allowed }) if request.method() == Method::OPTIONS => {
            return Err(Turned::Preflight { allowed });
        }
        Err(missing) => return Err(missing.into()),
    };
    let callback = if route.call == Call::Poll { request::callback(request)? } else { None };
    Ok((route.call, callback))
}

fn write(gate: &Gate, request: &Request, answer: Answer, callback: Option<&str>) -> Response<Body> {
    let mut response = match answer {
        Ok(success) => response::of_success(success, callback),
        Err(failure) => {
            metrics::REFUSALS.add(failure.row().code);
            let language = Language::of(request.headers());
            response::of_failure(&failure, language, request_id(request), callback)
        }
    };
    cors::allow(gate, request, response.headers_mut());
    response
}

/// API Gateway's, by which its access log and ours are joined.
fn request_id(request: &Request) -> &str {
    match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => context.request_id.as_deref().unwrap_or_default(),
        _ => "",
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", words.unwrap_or("without words"))
}
