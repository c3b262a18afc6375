"""The committed bundle of the player is made of the committed modules."""

import hashlib
from importlib import resources

PLAYER = resources.files("vizggml").joinpath("widgets", "player")


def sources_hash() -> str:
    """As bundle.mjs writes it: every .js and .css file in order of name; its name, a zero, its bytes, a zero."""
    digest = hashlib.sha256()
    for file in sorted(PLAYER.iterdir(), key=lambda f: f.name):
        if file.name.endswith((".js", ".css")):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def bundle_text() -> str:
    return resources.files("vizggml").joinpath("widgets", "player.bundle.js").read_text("utf-8")


def test_the_bundle_is_current() -> None:
    assert bundle_text().split("\n")[0].endswith(f"sha256:{sources_hash()}"), "run `make player`"


def test_nothing_is_fetched_and_no_text_becomes_markup() -> None:
    text = bundle_text()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttpRequest"):
        assert word not in text, word
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
