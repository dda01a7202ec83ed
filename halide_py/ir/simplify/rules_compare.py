"""Rules for min, max and comparisons that the linear form and the prover do not see."""

from __future__ import annotations

from .patterns import FALSE, TRUE, Rule, c0, c1, eq, fits, fold, max_, min_, ne, select, w, x, y, z

EXTREMA = [
    Rule(min_(max_(x, y), max_(x, z)), max_(min_(y, z), x)),
    Rule(max_(min_(x, y), min_(x, z)), min_(max_(y, z), x)),
    Rule(min_(select(w, x, c0), select(w, z, c1)), select(w, min_(x, z), fold(min_(c0, c1)))),
    Rule(max_(select(w, x, c0), select(w, z, c1)), select(w, max_(x, z), fold(max_(c0, c1)))),
    Rule(min_(select(w, c0, x), select(w, c1, z)), select(w, fold(min_(c0, c1)), min_(x, z))),
    Rule(max_(select(w, c0, x), select(w, c1, z)), select(w, fold(max_(c0, c1)), max_(x, z))),
    Rule(min_(0 - x, 0 - y), 0 - max_(x, y), types="exact"),
    Rule(max_(0 - x, 0 - y), 0 - min_(x, y), types="exact"),
    Rule(min_(x / c0, y / c0), min_(x, y) / c0, c0 > 0),
    Rule(max_(x / c0, y / c0), max_(x, y) / c0, c0 > 0),
]

COMPARISONS = [
    Rule(min_(x, y) < x, y < x),
    Rule(x < max_(x, y), x < y),
    Rule(x < min_(x, y), FALSE),
    Rule(max_(x, y) < x, FALSE),
    Rule(max_(x, y) <= x, y <= x),
    Rule(x <= min_(x, y), x <= y),
    Rule(min_(x, y) <= x, TRUE),
    Rule(x <= max_(x, y), TRUE),
    Rule(min_(x, y) < max_(x, y), ne(x, y)),
    Rule(eq(min_(x, y), x), x <= y),
    Rule(eq(max_(x, y), x), y <= x),
    Rule(ne(min_(x, y), x), y < x),
    Rule(ne(max_(x, y), x), x < y),

    Rule(max_(x, c0) < c1, x < c1, c0 < c1),
    Rule(min_(x, c0) < c1, x < c1, c1 <= c0),
    Rule(c0 < min_(x, c1), c0 < x, c0 < c1),
    Rule(c0 < max_(x, c1), c0 < x, c1 <= c0),
    Rule(eq(max_(x, c0), c1), eq(x, c1), c0 < c1),
    Rule(eq(min_(x, c0), c1), eq(x, c1), c1 < c0),
    Rule(ne(max_(x, c0), c1), ne(x, c1), c0 < c1),
    Rule(ne(min_(x, c0), c1), ne(x, c1), c1 < c0),

    Rule((x / c0) < c1, x < fold(c0 * c1), (c0 > 0) & fits(c0 * c1)),
    Rule(c1 < (x / c0), fold((c1 + 1) * c0 - 1) < x, (c0 > 0) & fits((c1 + 1) * c0 - 1)),

    Rule(eq(x, TRUE), x, types="bool"),
    Rule(eq(x, FALSE), ~x, types="bool"),
    Rule(ne(x, TRUE), ~x, types="bool"),
    Rule(ne(x, FALSE), x, types="bool"),
    Rule(eq(x, x), TRUE, types="bool"),
    Rule(ne(x, x), FALSE, types="bool"),
]
