#!/bin/sh
# Look for known weaknesses of what a running job needs. Exit code 1: there are some. Where the index of weaknesses cannot
# be reached, that is said, and nothing is claimed.
set -eu
. tools/system.sh

said=$(.venv/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r requirements/runtime.txt 2>&1) && {
    echo "$said"
    exit 0
}
case "$said" in
*"Found "*" known vulnerabilit"*)
    echo "$said"
    exit 1
    ;;
esac
echo "$said" | tail -n 1 >&2
echo "The index of known weaknesses could not be read, so nothing is known: try again where it can be reached." >&2
