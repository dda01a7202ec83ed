"""(b) A tone curve whose knee is a C function, fitted to a target rendition of the photograph by gradient descent.

The curve is `soft_knee(gain * x, knee)`: the exposure is raised, and what would be clipped bends over above the knee. Someone has graded
the photograph with a gain and a knee that we do not know; we find them from the two pictures alone. The derivative of the C
function is registered as a rule, in the language itself, and the reverse pass uses it like that of any built-in function.
"""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from photo import OUTPUT, Bytes, planar, save, shown
from tqdm import tqdm

import halide_py as hl

matplotlib.use("Agg")

KNEE_IN_C = """
#include <math.h>

/* The identity up to k, then a bend that approaches 1. */
static inline float soft_knee(float x, float k) {
    return x < k ? x : k + (1.0f - k) * tanhf((x - k) / (1.0f - k));
}
"""

soft_knee = hl.extern("float soft_knee(float x, float k)", source=KNEE_IN_C)


@soft_knee.gradient
def _knee_rule(adjoint: Any, result: Any, x: Any, k: Any) -> tuple[Any, Any]:
    """The vector-Jacobian product: the adjoint of the result times the derivative for each argument."""
    t = hl.tanh((x - k) / (1 - k))
    bent = x >= k
    by_x = hl.select(bent, 1 - t * t, hl.f32(1.0))
    by_k = hl.select(bent, 1 - t + (1 - t * t) * (x - 1) / (1 - k), hl.f32(0.0))
    return adjoint * by_x, adjoint * by_k


def tone_curve(photo: Any, curve: Any) -> Any:
    """The pipeline: `curve` holds the gain and the knee."""
    x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
    out = hl.Func("graded")
    out[x, y, c] = soft_knee(curve[0] * photo[x, y, c], curve[1])
    return out


def render(photo: npt.NDArray[np.float32], gain: float, knee: float) -> npt.NDArray[np.float32]:
    """The graded photograph, (3, height, width)."""
    graded = tone_curve(hl.Buffer(photo), hl.Buffer(np.array([gain, knee], np.float32)))
    graded.vectorize(hl.Var("x"), 8).parallel(hl.Var("y"))
    return np.array(graded.realize(list(photo.shape[::-1])))


def fit(photo: npt.NDArray[np.float32], target: npt.NDArray[np.float32], steps: int = 60) -> tuple[list[float], npt.NDArray[np.float32]]:
    """Gradient descent on the mean squared difference. Gives the losses and the gain and knee found."""
    channels, height, width = photo.shape
    curve = hl.ImageParam(hl.Float(32), 1, "curve")
    wanted = hl.Buffer(target, name="target")
    graded = tone_curve(hl.Buffer(photo, name="photo"), curve)

    r = hl.RDom([(0, width), (0, height), (0, channels)], "r")
    loss = hl.Func("loss")
    difference = graded[r.x, r.y, r.z] - wanted[r.x, r.y, r.z]
    loss[()] = 0.0
    loss[()] += difference * difference / hl.f32(float(photo.size))

    gradient = hl.propagate_adjoints(loss)[curve]
    step = hl.Pipeline([loss, gradient])

    values = np.array([1.0, 0.9], np.float32)
    loss_value, slope = np.zeros((), np.float32), np.zeros(2, np.float32)
    curve.set(hl.Buffer(values))
    outputs = [hl.Buffer(loss_value), hl.Buffer(slope)]
    losses: list[float] = []
    velocity = np.zeros(2, np.float32)
    with tqdm(range(steps), desc="   fitting", unit="step", ncols=100) as bar:
        for _ in bar:
            step.realize(outputs)
            losses.append(float(loss_value))
            velocity = np.float32(0.7) * velocity - np.float32(3.0) * slope
            values += velocity
            values[1] = np.clip(values[1], 0.05, 0.95)
            bar.set_postfix(loss=f"{losses[-1]:.2e}", gain=f"{values[0]:.3f}", knee=f"{values[1]:.3f}", refresh=False)
    return losses, values


def plot(losses: list[float], pictures: dict[str, npt.NDArray[np.float32]]) -> str:
    """Write the loss over the steps and the pictures as one figure. Gives its path."""
    figure, axes = plt.subplots(1, 1 + len(pictures), figsize=(4 * (1 + len(pictures)), 3.2), layout="constrained")
    axes[0].semilogy(losses)
    axes[0].set(xlabel="step", ylabel="mean squared difference", title="loss")
    for axis, (title, picture) in zip(axes[1:], pictures.items(), strict=True):
        axis.imshow(picture.transpose(1, 2, 0).clip(0, 1))
        axis.set(title=title, xticks=[], yticks=[])
    path = OUTPUT / "tone_curve.png"
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return shown(path)


def run(picture: Bytes, gain: float = 1.9, knee: float = 0.55) -> None:
    """Grade the photograph with a gain and a knee, and find them again."""
    print("\n(b) A tone curve with a C function in it, fitted by gradient descent")
    photo = planar(picture).astype(np.float32) / np.float32(255)
    target = render(photo, gain, knee)
    losses, found = fit(photo, target)
    print(f"   target: gain {gain:.3f}, knee {knee:.3f}; found: gain {found[0]:.3f}, knee {found[1]:.3f};"
          f" loss {losses[0]:.2e} -> {losses[-1]:.2e}")
    fitted = render(photo, float(found[0]), float(found[1]))
    print("   wrote", save("graded.png", fitted.transpose(1, 2, 0)))
    print("   wrote", plot(losses, {"photograph": photo, "target": target, "fitted": fitted}))
    if losses[-1] > 1e-4 * losses[0]:
        raise SystemExit("The fit did not converge.")
