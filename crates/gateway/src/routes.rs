//! Every HTTP route, once: functions, the local server and the checks of template.yaml read this table.

use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};

/// What a route asks for: the noun of its command, outcome and test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// A new place.
    Join,
    /// Back to a place.
    Rejoin,
    /// A place or session given up.
    Leave,
    /// Where one stands.
    Poll,
    /// How the whole line moves.
    Progress,
    /// Whether this function and its Redis answer.
    Health,
    /// Offerings.
    Search,
    /// An offering's seats.
    SeatMap,
    /// Seats kept.
    Hold,
    /// Seats given back.
    Release,
    /// A purchase.
    Book,
    /// A reservation read.
    ReadReservation,
    /// A reservation given back.
    CancelReservation,
    /// What a payment provider says.
    Pay,
    /// The keys by which others check access tokens.
    Keys,
    /// Where those keys are.
    Discovery,
}

/// What a call must prove before anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Nothing but the way in.
    Open,
    /// A live session: an access token, or the token itself, which the step then looks up.
    Session,
    /// That a reservation is the caller's: an access token of any age, the token, or the account.
    Owner,
    /// The payment provider's signature.
    Signature,
}

impl Call {
    /// What it must prove.
    pub fn guard(self) -> Guard {
        match self {
            Self::Search | Self::SeatMap | Self::Hold | Self::Release | Self::Book => Guard::Session,
            Self::ReadReservation | Self::CancelReservation => Guard::Owner,
            Self::Pay => Guard::Signature,
            Self::Join
            | Self::Rejoin
            | Self::Leave
            | Self::Poll
            | Self::Progress
            | Self::Health
            | Self::Keys
            | Self::Discovery => Guard::Open,
        }
    }
}

/// One route.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// Upper case.
    pub method: &'static str,
    /// Absolute; may end in `{id}`, which stands for one segment that is not empty.
    pub path: &'static str,
    /// The Lambda that serves it, named as its folder.
    pub function: &'static str,
    /// What it asks for.
    pub call: Call,
}

const fn route(method: &'static str, path: &'static str, function: &'static str, call: Call) -> Route {
    Route { method, path, function, call }
}

/// All of them.
pub const ROUTES: &[Route] = &[
    // What is asked most stands first: the search is linear.
    route("GET", "/api/status/poll", "poll", Call::Poll),
    route("GET", "/api/status/progress", "poll", Call::Progress),
    route("POST", "/api/queue/join", "join", Call::Join),
    route("POST", "/api/queue/rejoin", "join", Call::Rejoin),
    route("DELETE", "/api/queue/leave", "leave", Call::Leave),
    route("GET", "/trains/search", "seats", Call::Search),
    route("GET", "/api/offerings", "seats", Call::Search),
    route("GET", "/api/seats", "seats", Call::SeatMap),
    route("POST", "/api/seat/select", "hold-seat", Call::Hold),
    route("POST", "/api/seat/cancel", "hold-seat", Call::Release),
    route("POST", "/api/booking", "book", Call::Book),
    route("GET", "/api/booking/{id}", "book", Call::ReadReservation),
    route("DELETE", "/api/booking/{id}", "book", Call::CancelReservation),
    route("POST", "/api/payment/webhook", "pay", Call::Pay),
    route("GET", "/.well-known/jwks.json", "keys", Call::Keys),
    route("GET", "/.well-known/openid-configuration", "keys", Call::Discovery),
    route("GET", "/health", "poll", Call::Health),
];

/// Why a request has no route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// No route has this path.
    NotFound,
    /// The path has routes, but none with this method.
    MethodNotAllowed {
        /// The methods it has.
        allowed: Vec<&'static str>,
    },
}

/// The route of a method (upper case) and a path without query, and what stands for `{id}`, as sent.
pub fn find<'a>(method: &str, path: &'a str) -> Result<(&'static Route, Option<&'a str>), Missing> {
    let mut allowed = Vec::new();
    for route in ROUTES {
        if let Some(id) = matches(route.path, path) {
            if route.method == method {
                return Ok((route, Some(id).filter(|id| !id.is_empty())));
            }
            allowed.push(route.method);
        }
    }
    Err(if allowed.is_empty() { Missing::NotFound } else { Missing::MethodNotAllowed { allowed } })
}

/// What stands for `{id}` in a path of this pattern, empty where the pattern has none; `None`: another path.
fn matches<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    match pattern.strip_suffix("{id}") {
        None => (pattern == path).then_some(""),
        Some(prefix) => path.strip_prefix(prefix).filter(|id| !id.is_empty() && !id.contains('/')),
    }
}

/// The route of a request.
pub fn of(request: &Request) -> Result<(&'static Route, Option<&str>), Missing> {
    let method = request.method().as_str();
    let path = request.raw_http_path();
    let found = find(method, path);
    if found != Err(Missing::NotFound) {
        return found;
    }
    // A stage other than $default is a part of the path unless a domain mapping took it off; a stage may be
    // called "api", so the path as it came is tried first.
    match without_stage(request, path) {
        Some(path) => find(method, path),
        None => found,
    }
}

fn without_stage<'a>(request: &Request, path: &'a str) -> Option<&'a str> {
    let RequestContext::ApiGatewayV2(context) = request.request_context_ref()? else { return None };
    let stage = context.stage.as_deref().filter(|stage| *stage != "$default")?;
    path.strip_prefix('/')?.strip_prefix(stage).filter(|path| path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_own_path() {
        for route in ROUTES {
            let id = route.path.ends_with("{id}").then_some("x.1");
            let path = route.path.replace("{id}", "x.1");
            let (found, found_id) = find(route.method, &path).unwrap();
            assert_eq!((found, found_id), (route, id));
        }
    }

    #[test]
    fn other_paths_are_missing_and_other_methods_name_the_allowed_ones() {
        for path in
            ["", "/", "/api/queue", "/api/queue/join/", "/api/booking/", "/api/booking/a/b", "/API/SEATS"]
        {
            assert_eq!(find("GET", path), Err(Missing::NotFound), "{path}");
        }
        assert_eq!(
            find("PUT", "/api/booking/a"),
            Err(Missing::MethodNotAllowed { allowed: vec!["GET", "DELETE"] })
        );
        assert_eq!(find("GET", "/api/booking"), Err(Missing::MethodNotAllowed { allowed: vec!["POST"] }));
        assert_eq!(find("HEAD", "/health"), Err(Missing::MethodNotAllowed { allowed: vec!["GET"] }));
        assert_eq!(find("get", "/health"), Err(Missing::MethodNotAllowed { allowed: vec!["GET"] }));
    }
}
