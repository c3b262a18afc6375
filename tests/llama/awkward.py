"""Texts that a tokenizer gets wrong: odd spaces, contractions, digits of many scripts, marks, special tokens."""

from __future__ import annotations

import random

FRAGMENTS = (
    *" |  |\n|\r\n|\t|\u00a0|\u3000|\x85|\u2028|\x1c|\x1f|'s|'S|'ll|'LL|'RE| '|'d|'m|'t|'|.|,|!|?| .| ' ".split("|"),
    *"1|12|1234| 1|٣|½|Ⅷ|²|你|好| 你|é|e\u0301|ſ|K|İ|ß|😀|👨\u200d👩\u200d👧|\u200d".split("|"),
    *"\ufeff|\x00|\x7f|\u00ad|$|+|`|^".split("|"),
    *("<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|begin_of_text|>", "<|", "|>", "<|im_end|><|im_end|>"),
    *("\U0001d7d8", "\U000110a0", "\u0378", "\U0002ebf0", "\U000e0041", "\U0010ffff", "ⴰ", "क्ष", "ไทย", "עברית"),
)
RANGES = ((0x80, 0x3000), (0x3000, 0xD800), (0xE000, 0x20000), (0x20000, 0x110000))
LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ"


def text(dice: random.Random) -> str:
    """A short text of fragments, words, any code points and runs of spaces."""
    parts = []
    for _ in range(dice.randrange(14)):
        kind = dice.random()
        if kind < 0.6:
            parts.append(dice.choice(FRAGMENTS))
        elif kind < 0.8:
            parts.append("".join(dice.choice(LETTERS) for _ in range(dice.randrange(1, 9))))
        elif kind < 0.9:
            parts.append(chr(dice.randrange(*dice.choice(RANGES))))
        else:
            parts.append(" " * dice.randrange(1, 6))
    return "".join(parts)
