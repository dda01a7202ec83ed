"""Layers with weights: matmul and conv2d. Their derivatives are those of their sums, which become gathers and sums in blocks."""

from __future__ import annotations

from typing import Any

from ..ir.build import const
from ..lang.expr import Expr
from ..lang.func import Func
from ..lang.rdom import RDom
from ..lang.var import Var
from .rows import as_func, rooted


def matmul(a: Any, b: Any, inner: Any) -> Func:
    """The matrix product: out[x, y] = sum over k in [0, inner) of a[k, y] * b[x, k]; of NumPy arrays in Buffers that is `a @ b`."""
    f, g = as_func(a, "matmul", 2), as_func(b, "matmul", 2)
    x, y, k = Var("x"), Var("y"), RDom([(0, inner)])
    out = Func("matmul")
    out[x, y] = Expr.of(const(f.type(), 0))
    out[x, y] += f[k.x, y] * g[x, k.x]
    return rooted(out)


def conv2d(image: Any, weights: Any, channels: Any, width: Any, height: Any, bias: Any = None) -> Func:
    """A convolution layer without padding: out[x, y, k, n] = bias[k] + sum of image[x + i, y + j, c, n] * weights[i, j, c, k].

    i is in [0, width), j in [0, height), c in [0, channels). As NumPy arrays in Buffers images are (n, c, y, x), weights (k, c, j, i). For
    padding give the image a boundary condition and read it from -1 on, say.
    """
    f, w = as_func(image, "conv2d", 4), as_func(weights, "conv2d", 4)
    x, y, k, n = Var("x"), Var("y"), Var("k"), Var("n")
    r = RDom([(0, channels), (0, width), (0, height)])
    out = Func("conv2d")
    out[x, y, k, n] = Expr.of(const(f.type(), 0)) if bias is None else bias[k]
    out[x, y, k, n] += f[x + r.y, y + r.z, r.x, n] * w[r.y, r.z, r.x, k]
    return rooted(out)
