"""The story of a plan, in sentences."""

from __future__ import annotations

from typing import Any

_APPROVALS = {
    "proposed": "It is a proposal: nothing changes until it is approved by its digest.",
    "approved": "It was approved, exactly as it was proposed.",
    "rejected": "It records that a proposal was rejected; nothing moves.",
    "reported": "It is a report: nothing changes.",
}


def told(data: dict[str, Any]) -> list[str]:
    """Cause, cost, proof, reasons and approval, one sentence each."""
    plan = data["plan"]
    sentences = [
        f"Version {plan['version']} ({plan['kind']}) was planned at {plan['created_at']} from version {plan['base']}: "
        f"{plan['cause']}."
    ]
    if plan["events"]:
        shown = ", ".join(plan["events"][:5])
        more = f" and {len(plan['events']) - 5} more" if len(plan["events"]) > 5 else ""
        sentences.append(f"It answers {shown}{more}.")
    sentences.append(_cost(plan))
    if plan["reasons"]:
        sentences.append("Why: " + ", ".join(f"{reason} ({count})" for reason, count in plan["reasons"][:6]) + ".")
    if plan["approval"] in _APPROVALS:
        sentences.append(_APPROVALS[plan["approval"]])
    if plan["supersedes"]:
        sentences.append(f"Because of it, proposal {plan['supersedes']} can no longer be approved.")
    return sentences


def _cost(plan: dict[str, Any]) -> str:
    if not plan["moved"]:
        return f"It copies no replica; it concerns {plan['partitions']} partitions."
    proof = (
        "and no plan with this balance can do with fewer"
        if plan["optimal"]
        else f"and at least {plan['bound']} are needed by any plan with this balance"
    )
    old, new = plan["spread"]
    return (
        f"It copies {plan['moved']} replicas of {plan['partitions']} partitions, {proof}. Brokers hold {old[0]} to "
        f"{old[1]} replicas before and {new[0]} to {new[1]} after; {plan['leader_changes']} preferred leaders change."
    )
