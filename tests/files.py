import csv
import json

import pandas as pd


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def written(path, **columns):
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def config_of(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
