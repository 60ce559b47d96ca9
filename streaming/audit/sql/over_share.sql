-- Brokers over their share at a time: more replicas than their part of the capacity of all brokers that may hold some.
-- Parameters: :cluster, :at
WITH past AS (
  SELECT * FROM plans
  WHERE cluster_id = :cluster AND created_at <= CAST(:at AS TIMESTAMP) AND approval IN ('not_required', 'approved')
), layout AS (
  SELECT max_by(m.after, struct(p.plan_version, n)) AS replicas
  FROM past p LATERAL VIEW posexplode(p.moves) t AS n, m
  GROUP BY m.topic, m.partition
), held AS (
  SELECT broker_id, count(*) AS replicas FROM layout LATERAL VIEW explode(replicas) t AS broker_id GROUP BY broker_id
), brokers AS (
  SELECT c.broker_id, max_by(c, struct(p.plan_version, n)) AS broker
  FROM past p LATERAL VIEW posexplode(p.broker_changes) t AS n, c
  GROUP BY c.broker_id
), usable AS (
  SELECT b.broker_id, b.broker.rack, b.broker.capacity, coalesce(h.replicas, 0) AS replicas
  FROM brokers b LEFT JOIN held h ON h.broker_id = b.broker_id
  WHERE b.broker.state IN ('alive', 'failed')
), shares AS (
  SELECT *, sum(replicas) OVER () * capacity / sum(capacity) OVER () AS share FROM usable
)
SELECT broker_id, rack, capacity, replicas, round(share, 2) AS share
FROM shares
WHERE replicas > ceil(share)
ORDER BY replicas - share DESC, broker_id
