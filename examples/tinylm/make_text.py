"""Writes the training text of tinylm: short children's stories, one a line, in plain ASCII.

Every text follows a plan of plans.py (a thing is lost and found, a toy is shared, a kitten is
rescued, ...). Story draws a cast, a place and objects once, from words.py, and the plan uses them
throughout, so that names, pronouns, colours and places agree from the first sentence to the last,
and what happens has a cause. Each sentence is picked from several wordings. The text is a function
of the seed alone: only `Random.random()` is used, whose values Python promises to keep. Nothing is
downloaded.

    python make_text.py --stories 120000 --seed 1 --out text.txt
"""

import argparse
from random import Random

import plans
import words

INVENTED = 0.4  # share of invented names: they make the model copy names rather than guess them


class Who:
    """A character: name, kind ("girl", "fox") and pronouns; He and His begin a sentence."""

    def __init__(self, name, kind, female):
        self.name, self.kind = name, kind
        self.he, self.him, self.his = ("she", "her", "her") if female else ("he", "him", "his")
        self.He, self.His = self.he.capitalize(), self.his.capitalize()


class Story:
    """The sentences so far, the random source, and the fields that the wordings refer to."""

    def __init__(self, rng):
        self.rng, self.lines, self.fields = rng, [], {}

    def pick(self, options):
        return options[int(self.rng.random() * len(options))]

    def pick_two(self, options):
        """Two different elements of `options`."""
        first = self.pick(options)
        return first, self.pick([o for o in options if o != first])

    def set(self, **fields):
        self.fields.update(fields)

    def say(self, *wordings):
        """Appends one of the wordings, its {fields} filled in."""
        self.lines.append(self.pick(wordings).format(**self.fields))

    def maybe(self, *wordings):
        """As `say`, half of the time."""
        if self.rng.random() < 0.5:
            self.say(*wordings)

    def invented_name(self):
        """A name of two syllables that nobody bears, so that a reader must look back for it."""
        parts = ("BDFGKLMNPRSTVZ", "aeiou", "bdfgklmnprstvz", "aeiou")
        return "".join(self.pick(letters) for letters in parts) + self.pick(["", "", "n", "l", "s"])

    def who(self, taken=()):
        """A character whose name is not in `taken`: seven in ten are children."""
        child, female = self.rng.random() < 0.7, self.rng.random() < 0.5
        if child:
            names, kind = (words.GIRLS, "girl") if female else (words.BOYS, "boy")
        else:
            names, kind = (words.SHE_PETS if female else words.HE_PETS), self.pick(words.PET_KINDS)
        name = self.pick([n for n in names if n not in taken])
        if self.rng.random() < INVENTED:
            name = self.invented_name()
        return Who(name, kind, female)

    def cast(self):
        """Sets the fields that every plan may use."""
        a = self.who()
        b = self.who(taken=(a.name,))
        helper, helper_he = self.pick(words.HELPERS)
        place = self.pick(words.PLACES)
        trait, trait_b = self.pick_two(words.TRAITS)
        colour, colour_b = self.pick_two(words.COLOURS)
        spot, wrong = self.pick_two(place.spots)
        self.set(
            a=a,
            b=b,
            helper=helper,
            helper_he=helper_he,
            trait=trait,
            trait_b=trait_b,
            place=place.name,
            at=place.at,
            spot=spot,
            wrong=wrong,
            sight=self.pick(place.sights),
            colour=colour,
            colour_b=colour_b,
            toy=self.pick(words.TOYS),
            food=self.pick(words.FOODS),
        )


def story(rng):
    """One text: a line of ASCII without its newline."""
    s = Story(rng)
    s.cast()
    share = rng.random()
    for choice, part in plans.PLANS:
        share -= part
        if share < 0:
            break
    s.pick(choice)(s)
    return " ".join(s.lines)


def text(stories, seed):
    """The whole text as bytes: `stories` lines."""
    rng = Random(seed)
    return "".join(story(rng) + "\n" for _ in range(stories)).encode("ascii")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stories", type=int, default=120000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="text.txt")
    args = parser.parse_args()
    data = text(args.stories, args.seed)
    with open(args.out, "wb") as out:
        out.write(data)
    print(f"{args.out}: {args.stories} texts, {len(data)} bytes")


if __name__ == "__main__":
    main()
