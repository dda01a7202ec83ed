"""Rules for sums, products, quotients and remainders that are not matters of linear form. Floats: only what IEEE arithmetic makes exact."""

from __future__ import annotations

from .patterns import Rule, c0, c1, fits, fold, is_power, minus_zero, plus_zero, x, y

ARITHMETIC = [
    Rule(x + c0, x, minus_zero(c0), "float"),
    Rule(x - c0, x, plus_zero(c0), "float"),
    Rule(x * 1, x, types="float"),
    Rule(x / 1, x, types="float"),

    Rule(0 / x, 0),
    Rule((x / c0) / c1, x / fold(c0 * c1), (c0 > 0) & (c1 > 0) & fits(c0 * c1)),

    Rule(0 % x, 0),
    Rule((x % y) % y, x % y),
    Rule((x % c0) % c1, x % c1, (c1 > 0) & (c0 > 0) & ((c0 % c1) <= 0)),
    Rule((x + c0) % c1, x % c1, is_power(c1) & ((c0 % c1) <= 0)),
    Rule((x * c0) % c1, 0, is_power(c1) & ((c0 % c1) <= 0)),
]
