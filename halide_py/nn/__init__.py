"""Stable building blocks of learning, with derivatives: `hl.nn`.

Functions of Exprs (`activations`): sigmoid, softplus, relu, gelu. Functions of Funcs (`rows`, `layers`): logsumexp, softmax, log_softmax,
cross_entropy, layer_norm along dimension 0; matmul and conv2d. All are ordinary Funcs and rules of `custom_gradient`; none overflows for
arguments of any size, and a logit of -inf is a class that is left out. They come with vectors and threads, and can be scheduled further.
"""

from __future__ import annotations

from .activations import gelu, relu, sigmoid, softplus
from .layers import conv2d, matmul
from .rows import cross_entropy, layer_norm, log_softmax, logsumexp, softmax

__all__ = ["conv2d", "cross_entropy", "gelu", "layer_norm", "log_softmax", "logsumexp", "matmul", "relu", "sigmoid", "softmax", "softplus"]
