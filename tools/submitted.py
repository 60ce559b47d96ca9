"""What `spark-submit` starts: the command, in the session that it has set up."""

from streaming.cli import main

main()
