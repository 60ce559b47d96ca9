# Sourced by the other scripts: what differs between machines.

stop() {
    echo "$*" >&2
    exit 2
}

# Install the first of these packages that this Debian has; fails where that cannot be done.
debian_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    apt-get update -qq || return 1
    for package in "$@"; do
        if [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then
            echo "Installing $package with apt-get"
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
            return
        fi
    done
    return 1
}
