-- The layout at a time: the replicas of each partition, the preferred leader first, and the version that put them there.
-- Parameters: :cluster, :at
SELECT topic, partition, last.replicas, last.plan_version
FROM (
  SELECT m.topic, m.partition,
         max_by(struct(m.after AS replicas, p.plan_version), struct(p.plan_version, n)) AS last
  FROM plans p LATERAL VIEW posexplode(p.moves) t AS n, m
  WHERE p.cluster_id = :cluster AND p.created_at <= CAST(:at AS TIMESTAMP)
    AND p.approval IN ('not_required', 'approved')
  GROUP BY m.topic, m.partition
)
WHERE size(last.replicas) > 0
ORDER BY topic, partition
