-- Who moved most in a period: replicas copied, by topic, in plans that took effect.
-- Parameters: :cluster, :from, :to
SELECT m.topic,
       count(DISTINCT p.plan_version) AS plans,
       count(DISTINCT m.partition) AS partitions,
       sum(size(array_except(m.after, m.before))) AS replicas_moved
FROM plans p LATERAL VIEW explode(p.moves) t AS m
WHERE p.cluster_id = :cluster
  AND p.created_at BETWEEN CAST(:from AS TIMESTAMP) AND CAST(:to AS TIMESTAMP)
  AND p.approval IN ('not_required', 'approved')
  AND size(m.before) > 0 AND size(m.after) > 0
GROUP BY m.topic
HAVING replicas_moved > 0
ORDER BY replicas_moved DESC, m.topic
