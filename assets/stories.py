"""The tiny model's text: short stories from a grammar, endless and reproducible from a seed.

A story has a hero, a place, a thing, a trouble and a friend. The same names come back through the story, so a model has
something to remember from one sentence to the next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

ANIMALS = ("fox", "rabbit", "bear", "mouse", "owl", "duck", "hedgehog", "squirrel", "frog", "cat", "dog", "goat")
GIRLS = tuple(
    """
    Mia Lily Anna Rosa Nora Ella Zoe Ruby Clara Emma Daisy Hazel Ivy Julia Luna Maya Nina Olive Paula Sara Tina Vera
    """.split()
)
BOYS = tuple(
    """
    Tom Ben Max Leo Sam Finn Otto Jack Adam Carl Dan Eric Fred George Hugo Ivan Karl Luis Milo Noah Oscar Peter
    """.split()
)
TRAITS = ("little", "brave", "kind", "curious", "shy", "happy", "clever", "quiet")
PLACES = (
    ("forest", "in", "under the tall trees"),
    ("garden", "in", "between the flowers"),
    ("meadow", "in", "in the soft grass"),
    ("village", "in", "near the old bridge"),
    ("valley", "in", "beside the river"),
    ("farm", "on", "behind the red barn"),
    ("hill", "on", "at the top of the hill"),
    ("island", "on", "on the warm sand"),
)
THINGS = (
    ("red ball", "play with"),
    ("blue kite", "fly"),
    ("small boat", "sail"),
    ("silver bell", "ring"),
    ("warm scarf", "wear"),
    ("round drum", "play"),
    ("yellow hat", "wear"),
    ("shiny key", "look at"),
)
HIDING = ("under a bush", "behind a big stone", "in a hollow tree", "near the pond", "inside an old basket")
FOODS = ("apples", "berries", "nuts", "carrots", "pears", "honey cakes")
WEATHER = (
    ("the sun was warm and bright", "went outside"),
    ("the rain had stopped", "went for a walk"),
    ("the snow was soft and white", "went out to play"),
    ("the wind was blowing", "went up the hill"),
)


@dataclass(frozen=True)
class Person:
    name: str
    animal: str
    trait: str
    girl: bool

    @property
    def they(self) -> str:
        return "she" if self.girl else "he"

    @property
    def them(self) -> str:
        return "her" if self.girl else "him"

    @property
    def their(self) -> str:
        return "her" if self.girl else "his"


def article(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def people(rng: random.Random) -> tuple[Person, Person]:
    animals = rng.sample(ANIMALS, 2)
    traits = rng.sample(TRAITS, 2)
    girls = [rng.random() < 0.5, rng.random() < 0.5]
    names: list[str] = []
    for girl in girls:
        names.append(rng.choice([n for n in (GIRLS if girl else BOYS) if n not in names]))
    a, b = (Person(names[i], animals[i], traits[i], girls[i]) for i in range(2))
    return a, b


def opening(rng: random.Random, hero: Person, place: tuple[str, str, str]) -> str:
    home = f"{place[1]} a {rng.choice(('green', 'quiet', 'sunny', 'small'))} {place[0]}"
    return rng.choice(
        (
            f"Once upon a time, there was {article(hero.trait)} {hero.animal} named {hero.name}. "
            f"{hero.name} lived {home}.",
            f"Once upon a time, {article(hero.trait)} {hero.animal} named {hero.name} lived {home}.",
            f"There was once {article(hero.trait)} {hero.animal} who lived {home}. "
            f"{capital(hero.their)} name was {hero.name}.",
        )
    )


def lost(rng: random.Random, a: Person, b: Person, place: tuple[str, str, str]) -> list[str]:
    thing, use = rng.choice(THINGS)
    weather, went = rng.choice(WEATHER)
    where = rng.choice(HIDING)
    return [
        f"{a.name} had {article(thing)} and loved to {use} it every day.",
        f"One morning, {weather}, and {a.name} {went}.",
        f"But the {thing} was gone! {a.name} looked {place[2]}, but {a.they} could not find it.",
        f"{a.name} sat down and began to cry. Then {article(b.trait)} {b.animal} named {b.name} came by. "
        f'"Why are you sad?" asked {b.name}.',
        f'"I lost my {thing}," said {a.name}. "Do not worry," said {b.name}. "I will help you find it."',
        f"They looked and looked. At last, {b.name} found the {thing} {where}.",
        f'"Thank you, {b.name}!" said {a.name}. {a.name} was so happy that {a.they} gave {b.name} a big hug.',
        f"From that day on, {a.name} and {b.name} were best friends.",
    ]


def sharing(rng: random.Random, a: Person, b: Person, place: tuple[str, str, str]) -> list[str]:
    food = rng.choice(FOODS)
    weather, went = rng.choice(WEATHER)
    return [
        f"One day, {weather}, and {a.name} {went} to look for {food}.",
        f"{a.name} found many {food} {place[2]} and put them in {a.their} basket.",
        f"On the way home, {a.they} met {article(b.animal)} named {b.name}. {b.name} looked hungry.",
        f'"What do you have in your basket?" asked {b.name}. "I have {food}," said {a.name}. "Would you like some?"',
        f'"Yes, please!" said {b.name}. They sat down together and ate the {food}.',
        f"The {food} were sweet, and soon the basket was empty. "
        f"But {a.name} was not sad, because {a.they} had a new friend.",
        f"{a.name} learned that good things are better when you share them.",
    ]


def making(rng: random.Random, a: Person, b: Person, place: tuple[str, str, str]) -> list[str]:
    thing, use = rng.choice(THINGS)
    return [
        f"{a.name} wanted {article(thing)} more than anything, but {a.they} did not have one.",
        f"So {a.name} went to see {a.their} friend {b.name}, {article(b.trait)} {b.animal}. "
        f'"Can you help me make {article(thing)}?" asked {a.name}.',
        f'"Yes, I can," said {b.name}. "But we must work hard." They worked {place[2]} all day long.',
        f"When the moon came out, the {thing} was ready. It was beautiful.",
        f'"Now we can {use} it together," said {a.name}. And they did.',
        f"{a.name} learned that hard work is fun with a friend.",
    ]


def helping(rng: random.Random, a: Person, b: Person, place: tuple[str, str, str]) -> list[str]:
    weather, went = rng.choice(WEATHER)
    trouble, fix = rng.choice(
        (
            ("had fallen into a hole", "found a long branch and pulled {them} out"),
            ("was stuck in the mud", "held on tight and pulled {them} out"),
            ("had lost the way home", "took {them} by the hand and walked {them} home"),
            ("was afraid of the dark", "sat beside {them} and sang a soft song"),
        )
    )
    return [
        f"One day, {weather}, and {a.name} {went}.",
        f'{capital(place[2])}, {a.they} heard a small voice. "Help! Please help me!"',
        f"It was {article(b.animal)} named {b.name}. {b.name} {trouble}.",
        f'"I am here," said {a.name}. "I will help you." {a.name} {fix.format(them=b.them)}.',
        f'"You are so {rng.choice(("brave", "kind"))}!" said {b.name}. "Thank you for helping me."',
        f"{a.name} smiled. That night, {a.they} went to bed happy, because {a.they} had helped a friend.",
    ]


PLOTS = (lost, sharing, making, helping)


def story(rng: random.Random) -> str:
    hero, friend = people(rng)
    place = rng.choice(PLACES)
    return " ".join((opening(rng, hero, place), *rng.choice(PLOTS)(rng, hero, friend, place), "The end."))


def stories(seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    while True:
        yield story(rng)


if __name__ == "__main__":
    import itertools

    for text in itertools.islice(stories(0), 5):
        print(text, end="\n\n")
