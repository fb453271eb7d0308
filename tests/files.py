import csv


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
