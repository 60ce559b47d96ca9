"""Steps that choose who leads."""
