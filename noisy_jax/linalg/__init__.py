"""Linear algebra: factorizations of one matrix a call, and least squares in a ball."""
