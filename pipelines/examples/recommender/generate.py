"""Writes generated ratings: `python generate.py data.csv`."""

import csv
import pathlib
import random
import sys

USERS, FILMS = 200, 80
NOISE = 0.5  # stars, the standard deviation of moods: about the smallest error of any model


def write_csv(path: pathlib.Path, rows: int = 8_000, seed: int = 1) -> None:
    """Writes `rows` ratings of 1 to 5 stars. Tastes and kinds of films are not in it."""
    draw = random.Random(seed)
    users = [(draw.gauss(0, 0.3), draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(USERS)]
    films = [(draw.gauss(0, 0.4), draw.gauss(0, 0.7), draw.gauss(0, 0.7)) for _ in range(FILMS)]
    pairs = [(user, film) for user in range(USERS) for film in range(FILMS)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "film", "rating"])
        for user, film in draw.sample(pairs, rows):
            (kindness, *taste), (quality, *kind) = users[user], films[film]
            stars = 3.3 + kindness + quality + draw.gauss(0, NOISE)
            stars += sum(one * other for one, other in zip(taste, kind, strict=True))
            writer.writerow([f"user {user}", f"film {film}", min(max(round(stars), 1), 5)])


if __name__ == "__main__":
    write_csv(pathlib.Path(sys.argv[1]))
