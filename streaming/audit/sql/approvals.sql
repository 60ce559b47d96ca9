-- Approvals and by whom: every proposal, what was decided, by which event, and how long it waited.
-- Parameters: :cluster
WITH decided AS (
  SELECT base_version AS plan_version, approval, plan_version AS decided_by_version, e.event_id,
         get_json_object(e.payload, '$.by') AS decided_by, e.occurred_at
  FROM plans LATERAL VIEW explode(events) t AS e
  WHERE cluster_id = :cluster AND approval IN ('approved', 'rejected')
    AND e.outcome = 'applied' AND e.type IN ('plan_approved', 'plan_rejected')
)
SELECT p.plan_version, p.cause, p.metrics.moved_replicas AS moved_replicas, p.digest,
       coalesce(d.approval, 'open or superseded') AS decision, d.decided_by, d.event_id, d.decided_by_version,
       timestampdiff(SECOND, p.created_at, d.occurred_at) AS seconds_waited
FROM plans p LEFT JOIN decided d ON d.plan_version = p.plan_version
WHERE p.cluster_id = :cluster AND p.approval = 'proposed'
ORDER BY p.plan_version
