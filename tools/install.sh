#!/bin/sh
# Create .venv, or bring it up to date, with exactly what requirements/ locks, and the project itself.
set -eu
. tools/system.sh

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The first of $PYTHON (python3) and newer names beside it that is Python 3.11 or later.
find_python() {
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
        if is_recent "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    found=$("${PYTHON:-python3}" -V 2>/dev/null) || found="not to be found"
    stop "Python 3.11 or later is needed, and ${PYTHON:-python3} is $found:" \
        "install one, or name one that you have (make install PYTHON=/path/to/python3.11)."
}

create_venv() {
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        debian_install python3-venv || true
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            stop "$python cannot create virtual environments: install its venv module (Debian: apt-get install python3-venv)."
    fi
    echo "Creating .venv with $("$python" -V)"
    "$python" -m venv --clear .venv
}

# What pip is configured with, in the environment or in a file; uv reads neither.
pip_setting() { .venv/bin/python -m pip config list | sed -n "s/^[^=]*\.$1='\(.*\)'$/\1/p" | head -n 1; }

carry_over() {
    variable=$1 value=$(pip_setting "$2")
    if [ -n "$value" ] && [ -z "$(printenv "$variable" || true)" ]; then
        export "$variable=$value"
    fi
}

install_with_uv() {
    .venv/bin/python -m pip install --quiet --require-hashes -r requirements/bootstrap.txt || return 1
    carry_over UV_DEFAULT_INDEX index-url
    carry_over UV_INDEX extra-index-url
    carry_over UV_FIND_LINKS find-links
    carry_over SSL_CERT_FILE cert
    export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}" VIRTUAL_ENV="$PWD/.venv"
    # pip compiles what it installs; uv is told to for what a command or a job imports, the tools can wait.
    .venv/bin/uv pip install --quiet --require-hashes --compile-bytecode -r requirements/runtime.txt &&
        .venv/bin/uv pip install --quiet --require-hashes -r requirements/dev.txt &&
        .venv/bin/uv pip install --quiet --no-deps --no-build-isolation --editable .
}

install_with_pip() {
    .venv/bin/python -m pip install --quiet --require-hashes -r requirements/dev.txt &&
        .venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
}

was_moved() { [ -e .venv/installed.stamp ] && [ "$(cat .venv/installed.stamp)" != "$(pwd)" ]; }

if was_moved || ! is_recent .venv/bin/python; then
    create_venv
fi
echo "Installing the locked dependencies into .venv"
install_with_uv || {
    echo "uv did not manage it: trying with pip"
    install_with_pip || stop "The dependencies could not be installed: pip's last lines above say why."
}
# Where the environment forbids writing bytecode, every command would compile all this anew.
.venv/bin/python -m compileall -q placement streaming
