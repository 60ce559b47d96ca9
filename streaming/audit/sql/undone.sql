-- Plans that undid one another: the later one put partitions back to where they were before the earlier one.
-- Parameters: :cluster
WITH moved AS (
  SELECT p.plan_version, p.kind, p.cause, m.topic, m.partition, m.before, m.after
  FROM plans p LATERAL VIEW explode(p.moves) t AS m
  WHERE p.cluster_id = :cluster AND p.approval IN ('not_required', 'approved')
    AND m.before <> m.after AND size(m.before) > 0 AND size(m.after) > 0
)
SELECT a.plan_version AS version, b.plan_version AS undone_by, count(*) AS partitions,
       any_value(a.cause) AS cause, any_value(b.cause) AS cause_of_undoing
FROM moved a JOIN moved b
  ON a.topic = b.topic AND a.partition = b.partition AND b.plan_version > a.plan_version
 AND b.before = a.after AND b.after = a.before
GROUP BY a.plan_version, b.plan_version
ORDER BY version, undone_by
