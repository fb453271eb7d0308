"""What studies leave in their folder."""

import csv
import json


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def config_of(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
