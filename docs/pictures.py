"""The pictures of the README and of the documentation, each made by a solve.

    python docs/pictures.py [NAME ...]

Needs the extras `view` and `generate`, and Chromium with Playwright for those of pages; `blender-*` need Blender 4.2 or
newer on the PATH, Xvfb, xdotool and ImageMagick (Debian 13: blender python3-numpy xvfb xauth xdotool imagemagick).
"""

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pycolmap
from PIL import Image, ImageDraw, ImageFont
from scipy.sparse import csr_array

import initfree
from initfree.commands.cli import main as command
from initfree.drawing.palette import FAILED, GOOD, rgb
from initfree.drawing.raster import Look, picture
from initfree.drawing.scene import Colouring, Model, Scene, basis
from initfree.generator import generate, write
from initfree.generator.blender.archive import write_archive
from initfree.generator.database import write_database
from initfree.io.quiet import quiet
from initfree.models.report import checked_scene
from initfree.viewer import read_scene
from initfree.viewer.reading import MOST, aligned

HERE = Path(__file__).resolve().parent
PICTURES, EXAMPLES = HERE / "pictures", HERE.parent / "examples"
INK, SOFT, PAPER = (28, 36, 48), (102, 112, 133), (220, 226, 235)


def strip(panels: list[tuple[str, Image.Image]], columns: int = 3, *, dark: bool = False) -> Image.Image:
    """Pictures side by side, in rows of so many, each with its words below."""
    if len(panels) > columns:
        rows = [strip(panels[k : k + columns]) for k in range(0, len(panels), columns)]
        made = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)), (255, 255, 255))
        for k, row in enumerate(rows):
            made.paste(row, (0, k * rows[0].height))
        return made
    width, height = panels[0][1].size
    font = ImageFont.load_default(size=max(13, width // 21))
    line = int(1.35 * font.size) if isinstance(font, ImageFont.FreeTypeFont) else 16
    made = Image.new("RGB", (width * len(panels), height + line * 2 + 8), (18, 22, 28) if dark else (255, 255, 255))
    draw = ImageDraw.Draw(made)
    for k, (words, panel) in enumerate(panels):
        made.paste(panel, (k * width, 0))
        for row, text in enumerate(words.split("\n")):
            draw.text(
                ((k + 0.5) * width, height + row * line),
                text,
                fill=_ink(text, row, dark),
                font=font,
                anchor="ma",
            )
    return made


def _ink(text: str, row: int, dark: bool) -> tuple[int, int, int]:
    """Verdicts in their colour, the second row paler."""
    if "accepted" in text:
        return rgb(FAILED if "not accepted" in text else GOOD)
    return (PAPER if dark else INK) if row == 0 else SOFT


def save(name: str, image: Image.Image, colours: int = 96) -> None:
    """Few colours: a small file, and no difference to the eye."""
    PICTURES.mkdir(exist_ok=True)
    image.quantize(colours, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)
    print(f"written: {PICTURES / name}.png")


def building(folder: Path) -> Path:
    """A ring of 40 cameras around a building, shuffled, half a pixel of noise; solved from random cameras."""
    dataset = generate("set2", seed=1, shuffle=True, noise=0.5)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    initfree.solve(problem, initfree.SolveConfig(init="normal", loss="cauchy")).write(folder / "building")
    return folder / "building"


def unfolding(folder: Path) -> None:
    """Random cameras, and what each stage makes of them."""
    scene = read_scene(building(folder))
    assert scene.steps is not None
    stages = np.array(scene.steps.stages)
    varpro, refined = np.flatnonzero(stages == "varpro"), np.flatnonzero(stages == "refinement")
    early = len(varpro) // 5
    look = Look(width=420, height=280, closer=1.12)
    metric = int(np.flatnonzero(stages == "adjustment")[0])
    steps = [
        ("random cameras\nthe start", int(varpro[0])),
        (f"stage 1, object-space error\nafter {scene.steps.index[varpro[early]]} steps", int(varpro[early])),
        ("stage 1, object-space error\nat its end", int(varpro[-1])),
        ("stage 2, projective refinement\nhalf-way", int(refined[len(refined) // 3])),
        ("stage 3, metric upgrade\n", metric),
    ]
    panels = [(words, picture(scene, replace(look, step=k))) for words, k in steps]
    save("unfolding", strip([*panels, ("stage 4, bundle adjustment\nthe result, accepted", picture(scene, look))]))


def from_photographs(folder: Path) -> None:
    """Twelve photographs (rendered from a ring around a courthouse, a third of it), and `initfree solve` of their folder."""
    shape = {"width": 1280, "height": 960, "focal": 1200.0, "points": 500, "density": 5.0}
    write(generate("set1", seed=0, cameras=30, **shape), folder / "all", render=True, figures=False, database=False)
    taken = _made(folder / "photographs")
    for k in range(12):
        shutil.copy(folder / "all" / "images" / f"{k:04d}.png", taken)
    with suppress(SystemExit):
        command(["solve", str(taken), "--output", str(folder / "out"), "--quiet"])
    width, height = 480, 360
    sheet = Image.new("RGB", (width, height), INK)
    for k, path in enumerate(sorted(taken.iterdir())):
        small = Image.open(path).convert("RGB").resize((width // 4 - 2, height // 3 - 2), Image.Resampling.LANCZOS)
        sheet.paste(small, (k % 4 * (width // 4) + 1, k // 4 * (height // 3) + 1))
    scene = read_scene(folder / "out")
    assert scene.accepted, scene.verdict
    model = picture(scene, Look(width=width, height=height, dark=True, elevation=22.0, closer=0.95))
    panels = [
        ("12 photographs\ninitfree solve photographs --output out", sheet),
        (f"accepted: {scene.verdict}\nout/sparse/0", model),
    ]
    save("photographs", strip(panels, dark=True), colours=160)


def folded(folder: Path) -> None:
    """COLMAP's model of three facades that look alike, from the same matches, and what `initfree check` says of it."""
    dataset = generate("adversarial-facades", seed=0, noise=0.5)
    write_database(dataset, folder / "database.db")
    with quiet():
        models = pycolmap.incremental_mapping(folder / "database.db", folder, _made(folder / "models"))
    model = max(models.values(), key=lambda one: one.num_reg_images())
    for point in model.points3D.values():
        point.color = np.array((170, 140, 110), dtype=np.uint8)  # without photographs, COLMAP has none
    model.write(str(_made(folder / "colmap")))
    dataset.to_colmap().write(str(_made(folder / "truth")))
    found = initfree.check(folder / "colmap", folder / "database.db")
    assert found.verdict == "not accepted", found.reason
    error = f"{model.num_reg_images()} of {len(dataset.names)} images, {model.compute_mean_reprojection_error():.2f} px"
    scenes = [read_scene(folder / name) for name in ("truth", "colmap")]
    scenes[0] = replace(scenes[0], up=(0.0, 0.0, 1.0))  # the generator's
    x = dict(zip(scenes[0].model.images, scenes[0].model.centres @ _long_axis(scenes[0].model.centres), strict=True))
    cuts = sorted(np.argsort(np.diff(sorted(x.values())))[-2:])
    limits = [sorted(x.values())[k] for k in cuts]
    place = {name: int(np.searchsorted(limits, value)) for name, value in x.items()}
    look = Look(width=560, height=320, dark=True)
    true = picture(_by_facade(scenes[0], place), replace(look, azimuth=_across(scenes[0]), elevation=35.0, closer=1.12))
    wrong = picture(_by_facade(scenes[1], place), replace(look, elevation=35.0, closer=0.75))
    panels = [
        ("the scene: three facades that look alike\n30 cameras, coloured by their facade", true),
        (f"COLMAP: one facade; {error}\ninitfree check: not accepted", wrong),
    ]
    save("folded", strip(panels, dark=True))


def _long_axis(points: np.ndarray) -> np.ndarray:
    return np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0]


def _across(scene: Scene) -> float:
    """Azimuth of a look that has a row of cameras from left to right, from behind them."""
    _, a, b = basis(scene.up)
    model = scene.model
    axis, back = _long_axis(model.centres), model.centres.mean(axis=0) - model.xyz.mean(axis=0)
    side = np.cross(axis, scene.up)
    side *= np.sign(side @ back)
    return float(np.degrees(np.arctan2(side @ b, side @ a)))


def _by_facade(scene: Scene, place: dict[str, int]) -> Scene:
    """Cameras in three colours, which otherwise mean other things; landmarks in one."""
    of = np.array([place[name] for name in scene.model.images])
    plain = Colouring("", np.tile(np.array((205, 180, 150), dtype=np.uint8), (len(scene.model.xyz), 1)))
    nothing = csr_array(scene.sharing.shape)
    return replace(
        scene, accepted=False, joint=np.flatnonzero(of == 1), failing=np.flatnonzero(of == 2), sharing=nothing,
        colourings=(plain,),
    )  # fmt: skip


def upgrade(folder: Path) -> None:
    """The same projective reconstruction read as if it were metric, and after the metric upgrade."""
    dataset = generate("set2", seed=1, shuffle=True, noise=0.5)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    result = initfree.solve(problem, initfree.SolveConfig(adjust=False), "single")
    result.write(folder / "upgrade")
    scene = read_scene(folder / "upgrade")
    before = result.intermediate.before
    xyz, centres = before.xyz, before.centres
    shown = Model("before", before.names, before.R, centres, before.ids, xyz)
    near = np.linalg.norm(xyz - np.median(xyz, axis=0), axis=1)
    kept = near <= np.quantile(near, 0.97)
    colour = dict(zip(scene.model.ids.tolist(), scene.colourings[0].rgb, strict=True))
    rgb = np.array([colour.get(int(j), (128, 128, 128)) for j in before.ids[kept]], dtype=np.uint8)
    one = replace(scene.colourings[0], rgb=rgb)
    shown = replace(shown, ids=before.ids[kept], xyz=xyz[kept])
    bent = replace(
        scene, model=aligned(shown, scene.model), colourings=(one,), steps=None, joint=np.empty(0, dtype=np.int64)
    )
    look = Look(width=480, height=300, closer=1.05)
    save("upgrade", strip([("projective: no angle is right", picture(bent, look)),
                           ("after the metric upgrade", picture(scene, look))]))  # fmt: skip


def refused(folder: Path) -> None:
    """Two parts that a pole joins: not determined, and refused; orange is the weakest joint."""
    problem = initfree.load(generate("adversarial-pole", seed=0).to_colmap(noisy=True))
    result = initfree.solve(problem)
    result.write(folder / "pole")
    assert not result.accepted, result.certificate.reason
    save("refused", picture(read_scene(folder / "pole"), Look(width=760, height=420, closer=1.1)))


def example(number: str, folder: Path, look: Look | None = None, part: str = "") -> None:
    """What an example leaves in its folder."""
    script = next(EXAMPLES.glob(f"{number}_*.py"))
    output = folder / number
    before, sys.argv = sys.argv, [str(script), str(output)]
    sys.path.insert(0, str(EXAMPLES))
    with suppress(SystemExit):
        runpy.run_path(str(script), run_name="__main__")
    sys.argv = before
    save(f"example-{number}", picture(read_scene(output / part), look or Look(width=620, height=400, closer=1.1)))


def checked(folder: Path) -> None:
    """The model of example 09 with the image that is not to be trusted."""
    example("09", folder)
    scene = checked_scene(folder / "09" / "sparse", folder / "09" / "database.db", MOST)
    save("example-09", picture(scene, Look(width=620, height=400, closer=1.1)))


def sweep(folder: Path) -> None:
    """The runs of example 03's sweep, as its report has them."""
    from initfree.benchmark.report import write_report

    command = [sys.executable, str(EXAMPLES / "03_bench_formulation.py"), str(folder / "sweep")]
    subprocess.run(command, check=True)
    _shot(write_report(folder / "sweep"), folder / "table.png", "#reconstructions .viewer", 1280)
    save("example-03", Image.open(folder / "table.png").convert("RGB"))


def _shot(where: Path, output: Path, selector: str | None = None, width: int = 1180) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": 1020}, color_scheme="light")
        tab.goto(where.as_uri())
        tab.wait_for_timeout(500)
        (tab if selector is None else tab.locator(selector).first).screenshot(path=str(output))
        browser.close()


def page(folder: Path) -> None:
    """summary.html in a browser, and the view's own page."""
    _shot(building(folder) / "summary.html", folder / "summary.png")
    save("summary", Image.open(folder / "summary.png").convert("RGB"), colours=64)


def overlay(folder: Path) -> None:
    """A result over the truth, and what images share."""
    dataset = generate("set2", seed=3, shuffle=True, noise=0.5)
    dataset.to_colmap().write(str(_made(folder / "truth")))
    initfree.solve(initfree.load(dataset.to_colmap(noisy=True))).write(folder / "street")
    scene = read_scene(folder / "street", folder / "truth")
    look = Look(width=480, height=330, closer=1.1, elevation=35.0)
    panels = [
        ("landmarks by uncertainty", picture(scene, replace(look, colouring="uncertainty"))),
        ("what images share", picture(_bare(scene), replace(look, sharing=True))),
    ]
    save("view", strip(panels))


def _bare(scene: Scene) -> Scene:
    return replace(scene, other=None)


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def scales(folder: Path) -> None:
    """The generated set that the README's quick start makes, as its own overview."""
    with_code = ["generate", "set2", "--output", str(folder / "set"), "--shuffle", "--noise", "0.5"]
    with suppress(SystemExit):
        command(with_code)
    image = Image.open(folder / "set" / "covisibility.png").convert("RGB")
    save("covisibility", image.resize((image.width * 3 // 4, image.height * 3 // 4), Image.Resampling.LANCZOS))


def _program(folder: Path) -> Path:
    """The command of this very environment, for the extension to call."""
    script = folder / "initfree"
    package = Path(initfree.__file__).parents[1]
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}" -m initfree "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def blender(folder: Path, picture: str) -> None:
    """Blender's window with the panel, after Spawn ("panel") or after Load ("result"), on a screen that nobody sees."""
    write_archive(folder / "initfree.zip")
    (folder / "user").mkdir()
    screen = ["xvfb-run", "-a", "-s", "-screen 0 1150x900x24"]
    window = ["blender", "--factory-startup", "-p", "0", "0", "1150", "900", "--python", str(HERE / "blender_panel.py")]
    words = [*screen, *window, "--", folder / "initfree.zip", _program(folder), folder]
    subprocess.run(words, check=True, env={**os.environ, "BLENDER_USER_RESOURCES": str(folder / "user")})
    image = Image.open(folder / f"{picture}.png").convert("RGB")
    save(f"blender-{picture}", image.resize((920, 720), Image.Resampling.LANCZOS), 128)


MADE: dict[str, Callable[[Path], None]] = {
    "photographs": from_photographs,
    "folded": folded,
    "unfolding": unfolding,
    "upgrade": upgrade,
    "refused": refused,
    "view": overlay,
    "summary": page,
    "covisibility": scales,
    "blender-panel": lambda folder: blender(folder, "panel"),
    "blender-result": lambda folder: blender(folder, "result"),
    "example-01": lambda folder: example("01", folder, part="result"),
    "example-02": lambda folder: example("02", folder),
    "example-03": sweep,
    "example-04": lambda folder: example("04", folder),
    "example-05": lambda folder: example("05", folder, Look(width=620, height=400, closer=0.9), part="result"),
    "example-06": lambda folder: example("06", folder, part="initfree"),
    "example-07": lambda folder: example("07", folder),
    "example-08": lambda folder: example("08", folder),
    "example-09": checked,
    "example-10": lambda folder: example("10", folder),
    "example-11": lambda folder: example("11", folder),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MADE:
        with tempfile.TemporaryDirectory() as temporary:
            MADE[name](Path(temporary))
