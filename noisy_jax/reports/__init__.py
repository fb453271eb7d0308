"""How results are reported: intervals, tables that print and save, and files that are replaced."""
