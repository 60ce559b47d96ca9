"""Functions on Spark columns."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import IntegerType

from placement import partitions_for_keys
from placement.kafka.partitioner import NO_PARTITION
from placement.sizes import partition_count


def partition_for_key(col: Column | str, n: int) -> Column:
    """The partition that Kafka's producer gives to each key, computed on the executors in Arrow batches.

    Args:
        col: keys, binary or string.
        n: the number of partitions of the topic.

    Returns:
        An int column; null where the key is null, because such records go in turn.

    Raises:
        InvalidPartitionsError: n is not positive, or above 2^31-1.
    """
    n = partition_count(n)

    @pandas_udf(IntegerType())  # type: ignore[call-overload,untyped-decorator]
    def partition(keys: pd.Series) -> pd.Series:
        partitions = pd.Series(partitions_for_keys(pa.Array.from_pandas(keys), n), dtype="Int32")
        return partitions.mask(partitions == NO_PARTITION)

    column: Column = partition(col)
    return column
