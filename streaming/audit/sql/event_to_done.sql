-- Time from event to plan to done: when its first event occurred, when it was planned, when it was carried out.
-- Parameters: :cluster
WITH done AS (
  SELECT plan_version,
         min(CASE WHEN state = 'started' THEN occurred_at END) AS started_at,
         max(CASE WHEN state = 'completed' THEN occurred_at END) AS completed_at
  FROM plan_progress WHERE cluster_id = :cluster GROUP BY plan_version
)
SELECT p.plan_version, p.kind, p.cause, e.occurred_at, p.created_at AS planned_at, d.started_at, d.completed_at,
       timestampdiff(SECOND, e.occurred_at, p.created_at) AS seconds_to_plan,
       timestampdiff(SECOND, p.created_at, d.completed_at) AS seconds_to_done
FROM plans p
LEFT JOIN (
  SELECT plan_version, min(x.occurred_at) AS occurred_at
  FROM plans LATERAL VIEW explode(events) t AS x
  WHERE cluster_id = :cluster AND x.outcome = 'applied' AND x.type <> 'plan_progress'
  GROUP BY plan_version
) e ON e.plan_version = p.plan_version
LEFT JOIN done d ON d.plan_version = p.plan_version
WHERE p.cluster_id = :cluster AND p.metrics.moved_replicas > 0 AND p.approval IN ('not_required', 'approved')
ORDER BY p.plan_version
