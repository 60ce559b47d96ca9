#!/bin/sh
# Run the tests on the newest Spark, in an environment of their own below build/.
set -eu
. tools/system.sh

environment="$PWD/build/spark-4.2"
stamp="$environment/installed.stamp"
if ! cmp -s requirements/spark-4.2.txt "$stamp"; then
    "${PYTHON:-python3}" -m venv --clear "$environment"
    echo "Installing requirements/spark-4.2.txt into $environment"
    "$environment/bin/python" -m pip install --quiet --no-deps --require-hashes -r requirements/spark-4.2.txt
    "$environment/bin/python" -m pip install --quiet --no-deps --no-build-isolation --editable .
    cp requirements/spark-4.2.txt "$stamp"
fi
exec "$environment/bin/python" -m pytest --ignore=tests/live_kafka "$@"
