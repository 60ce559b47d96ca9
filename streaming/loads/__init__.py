"""What partitions were observed to weigh and brokers to take: recorded, smoothed, folded and planned by."""
