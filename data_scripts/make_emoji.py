"""The emoji of six artists, as one sheet of pictures for each: ftp/lab/emoji/*.webp and things.json.

    pip install resvg-py
    python data_scripts/make_emoji.py --packages FOLDER

FOLDER holds six npm packages as `npm pack` writes them; what is not there yet is packed first (about 190 MB). A thing
is on the sheets if all six artists have drawn it; flags, skin tones and the "woman ..." and "man ..." forms of a person
that is there without are left out: they are nearly the same picture again. The same packages and the same versions of
resvg-py and Pillow give the same bytes; about two minutes.
"""

import argparse
import io
import json
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import resvg_py
from PIL import Image

HOME = Path(__file__).resolve().parent.parent / "ftp" / "lab" / "emoji"
SIDE, COLUMNS, QUALITY = 64, 32, 80  # of WebP, of colour and transparency alike
NAMES = "emoji-datasource@16.0.0"
# artist: its package, and the folder of its pictures inside
ARTISTS = {
    "noto": ("emoji-datasource-google@16.0.0", "package/img/google/64/"),
    "twemoji": ("emoji-datasource-twitter@16.0.0", "package/img/twitter/64/"),
    "openmoji": ("openmoji@17.0.0", "package/color/svg/"),
    "openmoji_black": ("openmoji@17.0.0", "package/black/svg/"),
    "fluent_3d": ("@lobehub/fluent-emoji-3d@1.1.0", "package/assets/"),
    "fluent_flat": ("@lobehub/fluent-emoji-flat@1.1.0", "package/assets/"),
}
# the ten coarse classes, by patterns of "category/subcategory"; what no pattern fits belongs to none
CLASSES = {
    "animal": r"Animals & Nature/animal-.*|Smileys & Emotion/monkey-face",
    "food": r"Food & Drink/(?!dishware).*",
    "vehicle": r"Travel & Places/transport-.*",
    "place": r"Travel & Places/(place-.*|hotel)",
    "sky": r"Travel & Places/sky & weather",
    "clothing": r"Objects/clothing",
    "face": r"Smileys & Emotion/(face-.*|cat-face)",
    "object": r"Objects/(?!clothing).*|Food & Drink/dishware",
    "activity": r"Activities/.*",
    "person": r"People & Body/(person.*|family)",
}


def pack(package: str, folder: Path) -> Path:
    """The packed file of a package; fetched if it is not there."""
    name, _, version = package.rpartition("@")
    path = folder / f"{name.lstrip('@').replace('/', '-')}-{version}.tgz"
    if not path.exists():
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True)
    return path


def code(text: str) -> str:
    """Code points in one form: small letters, without leading zeros and without the sign for "as a picture"."""
    return "-".join(part.lstrip("0") for part in text.lower().split("-") if part != "fe0f")


def near_copy(entry: dict[str, Any]) -> bool:
    """A flag, a skin tone, or the form of a person for one sex."""
    sexes = r"1f46[89]-200d.*|.+-200d-(2640|2642)(-.*)?"
    return entry["category"] in ("Flags", "Component") or bool(re.fullmatch(sexes, code(entry["unified"])))


def read(package: Path, inside: str) -> dict[str, bytes]:
    """Every picture in a folder of a packed package, by its code."""
    with tarfile.open(package) as archive:
        members = [m for m in archive if m.isfile() and m.name.startswith(inside)]
        return {code(Path(m.name).stem): archive.extractfile(m).read() for m in sorted(members, key=lambda m: m.name)}  # type: ignore[union-attr]


def draw(content: bytes) -> Image.Image:
    """A picture of 64 pixels with its transparency, from SVG or from larger pixels."""
    if content.lstrip().startswith(b"<"):  # four times as large first: thin lines stay smooth
        content = bytes(resvg_py.svg_to_bytes(svg_string=content.decode(), width=4 * SIDE, height=4 * SIDE))
    with Image.open(io.BytesIO(content)) as picture:
        whole = picture.convert("RGBA")
    if whole.size == (SIDE, SIDE):
        return whole
    return whole.convert("RGBa").resize((SIDE, SIDE), Image.Resampling.BOX).convert("RGBA")


def sheet(pictures: list[Image.Image]) -> bytes:
    rows = -(-len(pictures) // COLUMNS)
    whole = Image.new("RGBA", (COLUMNS * SIDE, rows * SIDE))
    for place, picture in enumerate(pictures):
        whole.paste(picture, (place % COLUMNS * SIDE, place // COLUMNS * SIDE))
    out = io.BytesIO()
    whole.save(out, "WEBP", quality=QUALITY, alpha_quality=QUALITY, method=4)
    return out.getvalue()


def coarse(entry: dict[str, Any]) -> str:
    where = f"{entry['category']}/{entry['subcategory']}"
    return next((name for name, pattern in CLASSES.items() if re.fullmatch(pattern, where)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the emoji sheets.")
    parser.add_argument("--packages", type=Path, required=True, help="a folder for the npm packages")
    parser.add_argument("--out", type=Path, default=HOME)
    asked = parser.parse_args()
    asked.packages.mkdir(parents=True, exist_ok=True)
    with tarfile.open(pack(NAMES, asked.packages)) as archive:
        entries = json.load(archive.extractfile("package/emoji.json"))  # type: ignore[arg-type]
    pictures = {artist: read(pack(package, asked.packages), inside) for artist, (package, inside) in ARTISTS.items()}
    entries.sort(key=lambda entry: entry["sort_order"])
    things = [e for e in entries if not near_copy(e) and all(code(e["unified"]) in p for p in pictures.values())]
    for artist, by_code in pictures.items():
        content = sheet([draw(by_code[code(e["unified"])]) for e in things])
        (asked.out / f"{artist}.webp").write_bytes(content)
        print(f"{artist}: {len(content) / 1e6:.2f} MB", flush=True)
    rows = [
        {
            "code": code(e["unified"]),
            "name": " ".join(e["name"].lower().split()),
            "short": re.sub(r"[_-]", " ", e["short_name"]) if len(e["short_name"]) > 2 else e["short_name"],
            "group": e["category"],
            "subgroup": e["subcategory"],
            "coarse": coarse(e),
        }
        for e in things
    ]
    index = {
        "side": SIDE,
        "columns": COLUMNS,
        "artists": {artist: package for artist, (package, _) in ARTISTS.items()},
        "names": NAMES,
        "classes": list(CLASSES),
    }
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    head = json.dumps(index, indent=1, ensure_ascii=False).removesuffix("\n}")
    (asked.out / "things.json").write_text(f'{head},\n "things": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
    print(f"{len(things)} things, {sum(1 for row in rows if row['coarse'])} of them in a coarse class")


if __name__ == "__main__":
    main()
