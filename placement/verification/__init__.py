"""The independent check of plans: rules, racks, claims and loads; it shares no code with the planner."""
