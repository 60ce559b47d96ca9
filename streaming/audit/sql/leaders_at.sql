-- Preferred leaders, and replicas, per broker at a time.
-- Parameters: :cluster, :at
WITH past AS (
  SELECT * FROM plans
  WHERE cluster_id = :cluster AND created_at <= CAST(:at AS TIMESTAMP) AND approval IN ('not_required', 'approved')
), layout AS (
  SELECT max_by(m.after, struct(p.plan_version, n)) AS replicas
  FROM past p LATERAL VIEW posexplode(p.moves) t AS n, m GROUP BY m.topic, m.partition
), held AS (
  SELECT broker_id, count(*) AS replicas, sum(CASE WHEN place = 0 THEN 1 ELSE 0 END) AS leaders
  FROM layout LATERAL VIEW posexplode(replicas) t AS place, broker_id GROUP BY broker_id
), brokers AS (
  SELECT c.broker_id, max_by(c, struct(p.plan_version, n)) AS broker
  FROM past p LATERAL VIEW posexplode(p.broker_changes) t AS n, c GROUP BY c.broker_id
)
SELECT b.broker_id, b.broker.rack, b.broker.state, coalesce(h.leaders, 0) AS leaders, coalesce(h.replicas, 0) AS replicas
FROM brokers b LEFT JOIN held h ON h.broker_id = b.broker_id
WHERE b.broker.state <> 'gone'
ORDER BY b.broker_id
