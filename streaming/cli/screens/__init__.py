"""What commands show: tables, progress and charts, on a terminal or piped."""
