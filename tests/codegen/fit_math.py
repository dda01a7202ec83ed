"""Where the polynomials of hl_math.h come from: minimax fits by Remez' exchange, in 60 digits. Needs mpmath; run by hand, prints coefficients.

Each kernel is a smooth function on an interval, a weight that makes its error that of the whole formula, and a degree for float and for
double. Source: Remez (1934), in the form of Muller, Elementary Functions, chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mpmath as m  # type: ignore[import-not-found]
import numpy as np

m.mp.dps = 60
F = m.mpf
Function = Callable[[F], F]


class Kernel(NamedTuple):
    function: Function
    low: F
    high: F
    degrees: tuple[int | None, int | None]  # for float, for double
    weight: Function


def remez(k: Kernel, degree: int) -> tuple[list[F], F]:
    """The coefficients, lowest first, of the polynomial with the least largest weighted error, and that error."""
    middle, radius, count = (k.low + k.high) / 2, (k.high - k.low) / 2, degree + 2
    places = [middle - radius * m.cos(m.pi * i / (count - 1)) for i in range(count)]
    grid = [middle - radius * m.cos(m.pi * i / 400) for i in range(401)]
    while True:
        system, values = m.matrix(count, count), m.matrix(count, 1)
        for i, x in enumerate(places):
            for j in range(degree + 1):
                system[i, j] = x**j
            system[i, count - 1] = (-1) ** i / k.weight(x)
            values[i] = k.function(x)
        c = list(m.lu_solve(system, values))[:degree + 1]
        errors = [k.weight(x) * (m.polyval(c[::-1], x) - k.function(x)) for x in grid]
        peaks: list[tuple[F, F]] = []  # the largest error of each stretch of one sign
        for x, e in zip(grid, errors):
            if not peaks or (e > 0) != (peaks[-1][1] > 0):
                peaks.append((x, e))
            elif abs(e) > abs(peaks[-1][1]):
                peaks[-1] = x, e
        while len(peaks) > count:
            peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
        sizes = [abs(e) for _, e in peaks]
        if len(peaks) < count or max(sizes) < min(sizes) * F("1.001"):
            return c, max(abs(e) for e in errors)
        places = [x for x, _ in peaks]


def odd(f: Function, at_0: F) -> Function:
    """(f(x) - x) / x^3 as a function of x^2."""
    return lambda z: (f(m.sqrt(z)) / m.sqrt(z) - 1) / z if z > F(10) ** -20 else at_0


def log_quotient(z: F) -> F:
    s = m.sqrt(z)
    return (2 * m.atanh(s) / s - 2) / z if z > F(10) ** -20 else F(2) / 3


LOG_END = ((m.sqrt(2) - 1) / (m.sqrt(2) + 1)) ** 2 * F("1.0001")
TRIG_END = (m.pi / 4 * F("1.0001")) ** 2
KERNELS = {
    "exp": Kernel(lambda r: (m.expm1(r) - r) / r**2 if r else F(1) / 2, -m.log(2) / 2 * F("1.0001"), m.log(2) / 2 * F("1.0001"), (4, 9), lambda r: r**2 + F("1e-18")),
    "log": Kernel(log_quotient, F(0), LOG_END, (2, 6), lambda z: z + F("1e-6")),
    "sin": Kernel(odd(m.sin, -F(1) / 6), F(0), TRIG_END, (2, 5), lambda z: z + F("1e-4")),
    "fast sin": Kernel(odd(m.sin, -F(1) / 6), F(0), (m.pi / 2 * F("1.001")) ** 2, (2, None), lambda z: z + F("1e-4")),
    "cos": Kernel(lambda z: (m.cos(m.sqrt(z)) - 1 + z / 2) / z**2 if z > F(10) ** -15 else F(1) / 24, F(0), TRIG_END, (2, 5), lambda z: z * z + F("1e-4")),
    "atan": Kernel(odd(m.atan, -F(1) / 3), F(0), m.tan(m.pi / 8) ** 2 * F("1.0001"), (4, 10), lambda z: z + F("1e-4")),
    "asin": Kernel(odd(m.asin, F(1) / 6), F(0), F("0.25"), (4, 11), lambda z: z + F("1e-4")),
    "pow": Kernel(lambda z: (F(3) / 2 * log_quotient(z) - 1) / z if z > F(10) ** -15 else F(3) / 5, F(0), LOG_END, (None, 7), lambda z: (z + F("1e-3")) ** 2),
    "log2": Kernel(lambda z: (log_quotient(z) * z + 2) / m.log(2), F(0), LOG_END, (3, 5), lambda z: F(1)),
    "exp2": Kernel(lambda r: m.expm1(r * m.log(2)) / r if abs(r) > F(10) ** -40 else m.log(2), -F("0.50001"), F("0.50001"), (5, 6), lambda r: F(1)),
    "erf near": Kernel(lambda z: m.erf(m.sqrt(z)) / m.sqrt(z) - 1 if z > F(10) ** -20 else 2 / m.sqrt(m.pi) - 1, F(0), F("0.77"), (5, None), lambda z: F(1)),
    "erf far": Kernel(lambda x: -m.log(m.erfc(x), 2), F("0.87"), F(4), (6, None), lambda x: m.erfc(x) * m.log(2)),
}

for name, kernel in KERNELS.items():
    for bits, degree in zip((32, 64), kernel.degrees):
        if degree is not None:
            coefficients, error = remez(kernel, degree)
            digits = [float(np.float32(float(c)) if bits == 32 else c).hex() for c in coefficients]
            print(f"{name} {bits}: error {float(error):.2g}; {', '.join(digits)}")
