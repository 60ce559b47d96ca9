#!/bin/sh
# See to it that the browser for the tests of the report is there: on Debian as root by installing it.
set -eu
. tools/system.sh

if ! command -v chromium >/dev/null; then
    debian_install chromium || true
    command -v chromium >/dev/null ||
        stop "The tests of the report need Chromium: install it (Debian: apt-get install chromium), or leave them out: make test ARGS=\"-m 'not browser'\"."
fi
