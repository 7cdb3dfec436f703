-- What paid a reservation. The payments themselves, refunds that are due and refusals among them, are facts.

alter table reservations add column payment_id text;

comment on column reservations.payment_id is 'The payment that made it PAID, as its provider names it.';
