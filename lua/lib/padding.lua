-- Redis looks through a hash one field after another until a value in it is longer than 64 bytes
-- (hash-max-listpack-value); then it finds each by its name. Every request asks meta for a dozen.
local PADDING = ('-'):rep(65)
