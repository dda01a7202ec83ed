"""Rules for && and ||, and for select."""

from __future__ import annotations

from .patterns import FALSE, TRUE, Rule, c0, c1, eq, max_, min_, ne, same_type, select, w, x, y, z

CONNECTIVES = [
    Rule(eq(x, c0) & eq(x, c1), FALSE, (c0 < c1) | (c1 < c0)),
    Rule(ne(x, c0) | ne(x, c1), TRUE, (c0 < c1) | (c1 < c0)),
    Rule(eq(x, c0) & ne(x, c1), eq(x, c0), (c0 < c1) | (c1 < c0)),
    Rule(eq(x, c0) | ne(x, c1), ne(x, c1), (c0 < c1) | (c1 < c0)),
    Rule(eq(x, y) & ne(x, y), FALSE),
    Rule(eq(x, y) | ne(x, y), TRUE),
    Rule((x < y) & (y <= x), FALSE),
    Rule((x < y) & (y < x), FALSE),
    Rule((x < y) | (y <= x), TRUE),
    Rule((x <= y) & (y <= x), eq(x, y)),
    Rule((x < y) | eq(x, y), x <= y),
    Rule((x <= y) & ne(x, y), x < y),
    Rule((x & y) | (x & z), x & (y | z), types="bool"),
    Rule((x | y) & (x | z), x | (y & z), types="bool"),
    Rule(~x & (x | y), ~x & y, types="bool"),
    Rule(~x | (x & y), ~x | y, types="bool"),
]

SELECTS = [
    Rule(select(w, TRUE, FALSE), w, same_type(w, w), "bool"),
    Rule(select(w, FALSE, TRUE), ~w, same_type(w, w), "bool"),
    Rule(select(w, x, FALSE), w & x, same_type(w, x), "bool"),
    Rule(select(w, TRUE, x), w | x, same_type(w, x), "bool"),
    Rule(select(w, FALSE, x), ~w & x, same_type(w, x), "bool"),
    Rule(select(w, x, TRUE), ~w | x, same_type(w, x), "bool"),

    Rule(select(w, select(w, x, y), z), select(w, x, z), types="any"),
    Rule(select(w, x, select(w, y, z)), select(w, x, z), types="any"),
    Rule(select(w, select(z, x, y), y), select(w & z, x, y), same_type(w, z), "any"),
    Rule(select(w, select(z, x, y), x), select(w & ~z, y, x), same_type(w, z), "any"),
    Rule(select(w, x, select(z, x, y)), select(w | z, x, y), same_type(w, z), "any"),
    Rule(select(w, x, select(z, y, x)), select(~w & z, y, x), same_type(w, z), "any"),

    Rule(select(eq(x, y), x, y), y),
    Rule(select(eq(x, y), y, x), x),
    Rule(select(x < y, x, y), min_(x, y)),
    Rule(select(x < y, y, x), max_(x, y)),
    Rule(select(x <= y, x, y), min_(x, y)),
    Rule(select(x <= y, y, x), max_(x, y)),
    Rule(select(x < c0, x, c1), min_(x, c1), ((c0 - 1) <= c1) & (c1 <= c0)),
    Rule(select(c0 < x, x, c1), max_(x, c1), (c0 <= c1) & (c1 <= (c0 + 1))),
    Rule(select(x < c0, c1, x), max_(x, c1), ((c0 - 1) <= c1) & (c1 <= c0)),
    Rule(select(c0 < x, c1, x), min_(x, c1), (c0 <= c1) & (c1 <= (c0 + 1))),
]
