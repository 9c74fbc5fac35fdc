#!/usr/bin/env bash
# Sets Meshwright up where that is still to be done, then runs it.
#
#   ./meshwright.sh                    open the window on the default design
#   ./meshwright.sh evaluate DESIGN    any command; ./meshwright.sh --help lists them
#   ./meshwright.sh --set-up [EXTRA]   only set up, with an extra of pyproject.toml such as "test"
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$root/.venv"

# What Qt loads at run time, and fonts for English and Chinese. Names of Debian and Ubuntu.
system_packages=(
    libdbus-1-3 libegl1 libfontconfig1 libgl1 libglib2.0-0 libxcb-cursor0 libxcb-icccm4 libxcb-image0
    libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-shm0 libxcb-sync1 libxcb-xfixes0
    libxcb-xkb1 libx11-xcb1 libxkbcommon0 libxkbcommon-x11-0 libwayland-cursor0
    fontconfig fonts-dejavu-core fonts-wqy-microhei
)

say() { printf 'meshwright: %s\n' "$*" >&2; }

install_packages() {
    local as_root=()
    if ! command -v apt-get >/dev/null; then
        say "please install what corresponds to these Debian packages: $*"
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            as_root=(sudo)
        else
            say "please run as root: apt-get install $*"
            return 1
        fi
    fi
    say "installing system packages: $*"
    "${as_root[@]}" apt-get update -qq >/dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >/dev/null
}

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$candidate"
            return 0
        fi
    done
    return 1
}

make_venv() {
    local python
    find_python >/dev/null || install_packages python3 python3-venv
    if ! python="$(find_python)"; then
        say "Python 3.11 or newer is needed"
        return 1
    fi
    # Debian keeps what creates environments in a package of its own.
    "$python" -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
    "$python" -m venv --clear "$venv"
}

install_project() {
    local extra="$1" stamp fingerprint
    stamp="$venv/.set-up-${extra:-base}"
    fingerprint="$(cat "$root/pyproject.toml" "$root/constraints.txt" <(echo "$root") | cksum)"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$fingerprint" ] ||
        { [ -z "$extra" ] && [ "$(cat "$venv/.set-up-test" 2>/dev/null)" = "$fingerprint" ]; }; then
        return 0
    fi
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || make_venv
    say "installing Python packages into .venv (about a minute)"
    local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$root/constraints.txt")
    "${pip[@]}" setuptools >&2
    "${pip[@]}" --no-build-isolation -e "$root${extra:+[$extra]}" >&2
    echo "$fingerprint" >"$stamp"
}

lacks_libraries() {
    local qt=("$venv"/lib/python3.*/site-packages/PySide6/Qt)
    local plugins=("${qt[0]}"/plugins/platforms/lib{qxcb,qoffscreen,qwayland}.so)
    [[ "$(ldd "${plugins[@]}" "${qt[0]}"/lib/libQt6{Widgets,Svg}.so.6 2>/dev/null || true)" == *"not found"* ]]
}

lacks_fonts() {
    ! command -v fc-list >/dev/null || [ -z "$(fc-list :lang=zh)" ] || [ -z "$(fc-list :lang=en)" ]
}

install_libraries() {
    local stamp="$venv/.system-packages"
    if [ -e "$stamp" ] || [ "$(uname)" != Linux ]; then
        return 0
    fi
    if lacks_libraries || lacks_fonts; then
        # Without rights the commands that need no Qt still work.
        install_packages "${system_packages[@]}" || return 0
    fi
    touch "$stamp"
}

extra=""
if [ "${1:-}" = --set-up ]; then
    extra="${2:-}"
fi
[ -x "$venv/bin/python" ] || make_venv
install_project "$extra"
install_libraries
if [ "${1:-}" != --set-up ]; then
    exec "$venv/bin/meshwright" "$@"
fi
