-- Failures that are not healed although their grace is over: brokers that are dead or past their deadline, and what they
-- still hold.
-- Parameters: :cluster, :at
WITH past AS (
  SELECT * FROM plans
  WHERE cluster_id = :cluster AND created_at <= CAST(:at AS TIMESTAMP) AND approval IN ('not_required', 'approved')
), held AS (
  SELECT broker_id, count(*) AS replicas
  FROM (
    SELECT max_by(m.after, struct(p.plan_version, n)) AS replicas
    FROM past p LATERAL VIEW posexplode(p.moves) t AS n, m GROUP BY m.topic, m.partition
  ) LATERAL VIEW explode(replicas) t AS broker_id
  GROUP BY broker_id
), brokers AS (
  SELECT c.broker_id, max_by(c, struct(p.plan_version, n)) AS broker
  FROM past p LATERAL VIEW posexplode(p.broker_changes) t AS n, c GROUP BY c.broker_id
)
SELECT b.broker_id, b.broker.state, b.broker.since AS failed_at, b.broker.deadline, h.replicas
FROM brokers b JOIN held h ON h.broker_id = b.broker_id
WHERE b.broker.state IN ('dead', 'gone')
   OR (b.broker.state = 'failed' AND b.broker.deadline <= CAST(:at AS TIMESTAMP))
ORDER BY h.replicas DESC, b.broker_id
