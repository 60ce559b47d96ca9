#!/bin/sh
# See to it that Spark finds a Java it can use: on Debian as root by installing one, elsewhere by saying what to do.
set -eu
. tools/system.sh

look_for_java() { .venv/bin/python -m streaming.spark.java; }

if ! look_for_java >/dev/null 2>&1; then
    # JAVA_HOME wins over whatever is installed, so nothing is installed against it.
    if [ -z "${JAVA_HOME:-}" ]; then
        debian_install openjdk-17-jre-headless openjdk-21-jre-headless || true
    fi
    look_for_java
fi
