"""The journal's side of applying plans: what is to be done, who has claimed it, and what is reported."""
