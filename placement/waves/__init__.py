"""Plans cut into ordered waves."""
