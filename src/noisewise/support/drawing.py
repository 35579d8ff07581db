"""How figures look: colour-blind safe, quiet axes. Matplotlib is imported on first use."""

from types import ModuleType

from .supported import install

# Okabe and Ito's palette, black last
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
PINK, ORANGE, SKY, BLACK = "#CC79A7", "#E69F00", "#56B4E9", "#000000"
COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK)
GREY = "#6B7480"

RC: dict[str, object] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
}


def pyplot() -> ModuleType:
    """Return matplotlib.pyplot, or say how to get it."""
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ImportError(
            f"plots need {error.name}; install it with: {install('studies')}"
        ) from None
    return pyplot
