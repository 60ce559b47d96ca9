"""The story of a plan, in sentences."""

from __future__ import annotations

from typing import Any

from streaming.planning.decisions.decision import MAX_NAMED

Line = tuple[str, str, bool]
"""What is told about, the telling, and whether somebody should look after it."""

_APPROVALS = {
    "approved": "It was approved, exactly as it was proposed.",
    "rejected": "It records that a proposal was rejected; nothing moves.",
    "reported": "It is a report: nothing changes.",
}


def standing(cluster: str, now: dict[str, Any]) -> list[Line]:
    """How the cluster is at the moment, for whoever is on call."""
    proposal, waiting, away = now["proposal"], now["waiting"], now["away"]
    decide = f"version {proposal['version']}: {proposal['cause']}" if proposal else "nothing"
    progress = [f"version {each['version']}: {each['text']}" for each in now["progress"]]
    if waiting["partitions"]:
        versions = ", ".join(map(str, waiting["versions"]))
        progress.append(f"{waiting['partitions']} partitions are not where they are planned (versions {versions})")
    partitions = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in now["partitions"].items())
    brokers = ", ".join(f"broker {broker['id']} {broker['state']}" for broker in away) or "all alive"
    resume = f"{now['stopped']}; once that is fixed: replica-planner resume {cluster}"
    return [
        ("Newest version", f"{now['version']}, of {now['at']}", False),
        ("Planning", resume if now["stopped"] else "not stopped", bool(now["stopped"])),
        ("Waits for approval", decide, proposal is not None),
        ("Carrying out", "; ".join(progress) or "nothing is left to do", bool(progress)),
        ("Partitions", partitions, any(now["partitions"].values())),
        ("Brokers", f"{now['members']}: {brokers}", bool(away)),
    ]


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
    sentences.append(_cost(plan, by_load=data["loads"] is not None and data["loads"]["bound"] is not None))
    sentences += _weights(data["loads"], _copies(plan))
    if plan["reasons"]:
        sentences.append("Why: " + ", ".join(f"{reason} ({count})" for reason, count in plan["reasons"][:6]) + ".")
    sentences += _unhealed(data["unhealed"], data["left_lost"])
    if plan["fate"]:
        sentences.append(f"It is a proposal, and nothing of it is done: {plan['fate']}.")
    if plan["approval"] in _APPROVALS:
        sentences.append(_APPROVALS[plan["approval"]])
    if plan["supersedes"]:
        sentences.append(f"Because of it, proposal {plan['supersedes']} can no longer be approved.")
    return sentences


def _unhealed(count: int, rows: list[dict[str, Any]]) -> list[str]:
    """Partitions that are left on brokers that are to hold none; nothing where there are none."""
    if not count:
        return []
    shown = ", ".join(f"{row['topic']}-{row['partition']} ({row['reason']})" for row in rows[:MAX_NAMED])
    more = f" and {count - MAX_NAMED} more" if count > MAX_NAMED else ""
    return [f"{count} partition{' is' if count == 1 else 's are'} not healed after it: {shown}{more}."]


def _copies(plan: dict[str, Any]) -> str:
    return "It copies" if plan["effective"] else "It would copy"


def _weights(loads: dict[str, Any] | None, copies: str) -> list[str]:
    """Bytes, and what becomes of hot brokers; nothing where no loads were known."""
    if loads is None:
        return []
    proof = "" if loads["bound"] is None else f"; at least {loads['bound']:,} by the certified bound"
    sentences = [f"{copies} {loads['bytes']:,} bytes{proof}."]
    hot = ", ".join(
        f"broker {one['broker']} from {one['before']} to {one['after']} % of its share of {one['resource']}"
        for one in loads["hot"]
    )
    sentences.append(f"Hot brokers: {hot}." if hot else f"No broker is {loads['trigger']} % above its share before it.")
    return sentences


def _cost(plan: dict[str, Any], *, by_load: bool) -> str:
    if not plan["moved"]:
        return f"{_copies(plan)} no replica; it concerns {plan['partitions']} partitions."
    if by_load:
        proof = ""
    elif plan["optimal"]:
        proof = ", and no plan with this balance can do with fewer"
    else:
        proof = f", and at least {plan['bound']} are needed by any plan with this balance"
    old, new = plan["spread"]
    return (
        f"{_copies(plan)} {plan['moved']} replicas of {plan['partitions']} partitions{proof}. Brokers hold {old[0]} to "
        f"{old[1]} replicas before and {new[0]} to {new[1]} {plan['sides'][1]}; {plan['leader_changes']} preferred "
        f"leaders {'change' if plan['effective'] else 'would change'}."
    )
