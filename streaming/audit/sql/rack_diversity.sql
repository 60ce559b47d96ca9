-- Partitions that have two replicas in one rack although there are racks enough, and since when without a break.
-- Parameters: :cluster, :at
WITH past AS (
  SELECT * FROM plans
  WHERE cluster_id = :cluster AND created_at <= CAST(:at AS TIMESTAMP) AND approval IN ('not_required', 'approved')
), placed AS (
  SELECT m.topic, m.partition, m.after AS replicas, p.plan_version AS since_version,
         lead(p.plan_version, 1, 9223372036854775807)
           OVER (PARTITION BY m.topic, m.partition ORDER BY p.plan_version, n) AS until_version
  FROM past p LATERAL VIEW posexplode(p.moves) t AS n, m
), racked AS (
  SELECT c.broker_id, c.rack, c.state, p.plan_version AS since_version,
         lead(p.plan_version, 1, 9223372036854775807)
           OVER (PARTITION BY c.broker_id ORDER BY p.plan_version, n) AS until_version
  FROM past p LATERAL VIEW posexplode(p.broker_changes) t AS n, c
), points AS (  -- where an answer may change: the partition is placed anew, or a broker changes
  SELECT l.topic, l.partition, l.replicas, v.plan_version
  FROM placed l JOIN (SELECT DISTINCT since_version AS plan_version FROM racked
                      UNION SELECT DISTINCT since_version FROM placed) v
    ON v.plan_version >= l.since_version AND v.plan_version < l.until_version
  WHERE size(l.replicas) > 0
), racks_there AS (
  SELECT v.plan_version, count(DISTINCT r.rack) AS racks
  FROM (SELECT DISTINCT plan_version FROM points) v JOIN racked r
    ON v.plan_version >= r.since_version AND v.plan_version < r.until_version AND r.state IN ('alive', 'failed')
  GROUP BY v.plan_version
), used AS (
  SELECT o.topic, o.partition, o.plan_version, o.replicas, count(DISTINCT r.rack) AS racks
  FROM (SELECT *, explode(replicas) AS broker_id FROM points) o JOIN racked r
    ON r.broker_id = o.broker_id AND o.plan_version >= r.since_version AND o.plan_version < r.until_version
  GROUP BY o.topic, o.partition, o.plan_version, o.replicas
), judged AS (
  SELECT u.*, u.racks < least(size(u.replicas), t.racks) AS poor
  FROM used u JOIN racks_there t ON t.plan_version = u.plan_version
), last AS (
  SELECT topic, partition, max_by(replicas, plan_version) AS replicas, max_by(racks, plan_version) AS racks,
         max_by(poor, plan_version) AS poor, max(CASE WHEN NOT poor THEN plan_version ELSE 0 END) AS last_good
  FROM judged GROUP BY topic, partition
), begun AS (
  SELECT l.topic, l.partition, l.replicas, l.racks, min(j.plan_version) AS since_version
  FROM last l JOIN judged j ON j.topic = l.topic AND j.partition = l.partition AND j.plan_version > l.last_good
  WHERE l.poor
  GROUP BY l.topic, l.partition, l.replicas, l.racks
)
SELECT b.topic, b.partition, b.replicas, b.racks, b.since_version, p.created_at AS since
FROM begun b JOIN past p ON p.plan_version = b.since_version
-- A partition that is gone has an empty list as its last one.
WHERE NOT EXISTS (SELECT 1 FROM placed g WHERE g.topic = b.topic AND g.partition = b.partition
                  AND g.until_version = 9223372036854775807 AND size(g.replicas) = 0)
ORDER BY b.topic, b.partition
