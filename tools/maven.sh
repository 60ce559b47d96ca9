#!/bin/sh
# See to it that Maven, which fetches Kafka for the live tests, and openssl are there: on Debian as root by installing them.
set -eu
. tools/system.sh

command -v mvn >/dev/null || debian_install maven || true
command -v openssl >/dev/null || debian_install openssl || true
for command in mvn openssl; do
    command -v "$command" >/dev/null ||
        stop "A real Kafka needs $command: install it (Debian: apt-get install maven openssl); \`make test\` does without."
done
