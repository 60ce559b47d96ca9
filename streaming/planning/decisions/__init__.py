"""What an event or a deadline changes: pure rules from state, event and policy to a decision."""
