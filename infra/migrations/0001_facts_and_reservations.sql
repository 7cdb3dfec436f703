-- What became true, and what follows from it. Only facts are ever written, by persist; PostgreSQL guards them
-- once more on its own.
--
-- Instants are Unix milliseconds and amounts the currency's smallest unit, as in Redis and in answers.
-- There are no foreign keys: facts arrive by two queues in any order, and each row must stand alone.
-- Ids compare byte by byte (collate "C"), as everywhere else.

create table events (
    event_id      text   collate "C" primary key,
    version       bigint not null check (version >= 1),
    definition    jsonb  not null,
    changed_at_ms bigint not null
);

create table facts (
    event_id        text   collate "C" not null,
    epoch           bigint not null,
    stream_ms       bigint not null,
    stream_sequence bigint not null,
    at_ms           bigint not null,
    body            jsonb  not null,
    kind            text   collate "C" not null generated always as (body ->> 'kind') stored,
    token           uuid   generated always as
                           ((coalesce(body ->> 'token', body -> 'reservation' ->> 'token'))::uuid) stored,
    primary key (event_id, epoch, stream_ms, stream_sequence)
);

-- One kind in the journal's order: the places of a draw, the changes of a sale.
create index facts_by_kind on facts (event_id, kind, epoch, stream_ms, stream_sequence);

create table reservations (
    reservation_id    text   collate "C" primary key,
    event_id          text   collate "C" not null,
    token             uuid   not null,
    account           text,
    status            text   not null
                      check (status in ('CONFIRMED', 'PENDING_PAYMENT', 'PAID', 'CANCELLED', 'EXPIRED')),
    version           bigint not null check (version >= 1),
    seat_count        bigint not null check (seat_count >= 1),
    amount            bigint not null check (amount >= 0),
    currency          text   not null,
    created_at_ms     bigint not null,
    updated_at_ms     bigint not null,
    payment_due_at_ms bigint,
    constraint one_reservation_a_token unique (event_id, token)
);

-- Exports and audits page through an event in the order of its sales.
create index reservations_by_time on reservations (event_id, created_at_ms, reservation_id);

create table reservation_places (
    event_id       text    collate "C" not null,
    reservation_id text    collate "C" not null,
    part           integer not null,
    position       integer not null,
    offering_id    text    collate "C" not null,
    section_id     text    collate "C" not null,
    price          bigint  not null check (price >= 0),
    count          bigint  not null check (count >= 1),
    seat           text    collate "C" check (seat is null or count = 1),
    kept           boolean not null,
    primary key (event_id, reservation_id, part, position)
);

create unique index one_owner_a_seat on reservation_places (event_id, offering_id, seat)
    where kept and seat is not null;

comment on table events is 'The newest definition of each sale.';
comment on table facts is 'The journal: each fact once, named by event, epoch and stream id.';
comment on column facts.body is 'The fact as it travelled, without its identity and instant.';
comment on column facts.token is 'The one token a fact is about, where it is about one.';
comment on table reservations is 'Each reservation as of its highest version.';
comment on table reservation_places is 'What was bought: a row for each named seat, a row for each general section.';
comment on column reservation_places.part is 'Which section''s part of the reservation, from 0.';
comment on column reservation_places.position is 'Which seat of the part, from 0.';
comment on column reservation_places.kept is 'Whether the reservation still keeps its places.';
