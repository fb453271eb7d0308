"""Reports of results: intervals, tables that print and save, and files that are replaced."""
