"""Arrays, lists and data frames, read as columns of finite numbers."""
