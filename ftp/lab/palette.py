"""One meaning per colour, for figures, lessons and the page: what is not here has no colour.

| meaning | how it is drawn |
|---|---|
| ID, the task at home | indigo |
| OOD, the shifts | crimson; one shift is a thin line of the same colour |
| a layer, and its leash | teal, dark for early layers and light for late ones (on dark paper the other way round) |
| where the gradient leads, W~ | gold |
| an anchor W0 | grey |
| where the weights are, W | the colour of text |
| a method | its own colour, dash and marker |
| a label of a map | `LABELS`, background first |

Within a chart any two can be told apart under each kind of colour blindness; `tests/lab/test_palette.py` measures it.
Text has the theme's own colour, never a method's: some of those are too light to read.
"""

from dataclasses import dataclass

# Okabe-Ito, for methods; lessons take them for what has no meaning elsewhere, such as two curves of one exercise
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
GREY = "#858585"


@dataclass(frozen=True)
class Palette:
    """The colours of one theme."""

    paper: str
    text: str
    muted: str  # second-rate text and reference lines, at least 4.5 : 1
    grid: str
    id: str
    ood: str
    layers: tuple[str, str, str]  # early, middle, late
    walk: str
    gain: str  # two colours of text, so 4.5 : 1
    loss: str
    anchor: str = GREY

    @property
    def leash(self) -> str:
        return self.layers[1]


LIGHT = Palette(
    paper="#FFFFFF",
    text="#1F2430",
    muted="#5B6270",
    grid="#E4E7EC",
    id="#4343C4",
    ood="#C2154A",
    layers=("#0A2A3A", "#0B6B78", "#489C93"),
    walk="#8A6A00",
    gain="#1B5E8C",
    loss="#A33B12",
)
DARK = Palette(
    paper="#171614",  # Streamlit's own dark background
    text="#F2F1EE",
    muted="#B3B0A9",
    grid="#363430",
    id="#A9B4FF",
    ood="#FF5C8A",
    layers=("#2F7A88", "#6FC3BF", "#D6F5E9"),
    walk="#E3CE7C",
    gain="#7CC4F2",
    loss="#FF9466",
)

# light, dark: seven colours of Okabe-Ito (no yellow on white) and five found by search
METHODS = {
    "finetune": ("#000000", "#FFFFFF"),
    "linear_probe": (SKY, SKY),
    "partial_fusion": ("#112288", "#7A4DFF"),
    "bitfit": ("#663311", "#DDAAAA"),
    "adapter": ("#88BB66", "#AAFF88"),
    "llrd": ("#554455", "#F0E442"),
    "l2_sp": (ORANGE, ORANGE),
    "mars_sp": (GREEN, GREEN),
    "lp_ft": (PURPLE, PURPLE),
    "tpgm": (BLUE, BLUE),
    "ftp": (VERMILLION, VERMILLION),
    "wise": ("#8800FF", "#BB66FF"),
}

# methods for tasks in a row: each has the colour of one that does not stand in the same pictures
TASK_METHODS = {
    "ft_plus": METHODS["bitfit"],
    "lwf_mc": METHODS["lp_ft"],
    "l2p": METHODS["adapter"],
    "dualprompt": METHODS["partial_fusion"],
    "coda_prompt": METHODS["llrd"],
    "ewc": METHODS["tpgm"],
    "ftp_ewc": METHODS["wise"],
    "nearest_mean": METHODS["mars_sp"],
}

# labels of a map, background first; found by search near Okabe-Ito, for every eye at least 15 apart (`tests/lab`)
LABELS = ("#22252B", "#FF780F", "#96E1FF", "#5AB4A5", "#FFE100", "#0F4B87", "#A53C00", "#A55AE1")


def label_colors(count: int) -> list[str]:
    """The colours of so many labels; more than there are begin again after the background.

    >>> label_colors(9)[-1] == LABELS[1]
    True
    """
    return [LABELS[n] if n < len(LABELS) else LABELS[1 + (n - 1) % (len(LABELS) - 1)] for n in range(count)]


def palette(dark: bool) -> Palette:
    """The colours on light or on dark paper.

    >>> palette(dark=False).ood
    '#C2154A'
    """
    return DARK if dark else LIGHT


def method_color(method: str, dark: bool = False) -> str:
    """The colour of a method; one that is not known is grey.

    >>> method_color("ftp"), method_color("mine")
    ('#D55E00', '#858585')
    """
    return {**TASK_METHODS, **METHODS}.get(method, (GREY, GREY))[dark]
