"""The demo: `make demo`, or `make demo PHOTO=file` for a photograph of your own. Pictures go to demo_output/."""

from __future__ import annotations

import sys

import ahead_of_time
import sharpen
import tone_curve
from photo import load


def main() -> None:
    """Run the three parts on one photograph."""
    path = sys.argv[1] if len(sys.argv) > 1 else None
    picture = load(path)
    height, width, _ = picture.shape
    print(f"Photograph: {path or 'coffee, bundled with scikit-image'}, {width}x{height}\n")
    sharpen.run(picture)
    tone_curve.run(picture)
    ahead_of_time.run(picture)


if __name__ == "__main__":
    main()
