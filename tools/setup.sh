# Shell functions that ./check and ./demo share; to be sourced. They install what Kiln needs on
# Debian 12.

kiln_build_packages="gcc libc6-dev cmake ninja-build pkg-config clang-19 llvm-19-dev libisl-dev libgmp-dev
libcjson-dev libprotobuf-c-dev protobuf-c-compiler ca-certificates"
kiln_test_packages="libcmocka-dev libclang-rt-19-dev libonnx-testdata"

# Prints those of the packages given that are not installed.
kiln_missing() {
    for package in "$@"; do
        case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
        *" installed") ;;
        *) echo "$package" ;;
        esac
    done
}

# kiln_install PACKAGE...: installs what is missing, as root or through sudo.
kiln_install() {
    if ! command -v dpkg-query >/dev/null; then
        echo "no Debian here; needed: $*" >&2
        return 0
    fi
    missing=$(kiln_missing "$@")
    [ -n "$missing" ] || return 0
    echo "installing:" $missing >&2
    sudo=
    [ "$(id -u)" = 0 ] || sudo="sudo"
    apt="env DEBIAN_FRONTEND=noninteractive apt-get -qq"
    apt="$apt -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300"
    $sudo $apt update >&2 && $sudo $apt install -y --no-install-recommends $missing >&2
}

# kiln_build PRESET [cmake options]: configures and builds.
kiln_build() {
    preset=$1
    shift
    echo "== $preset" >&2
    cmake --preset "$preset" --log-level=WARNING "$@" >&2 && cmake --build --preset "$preset" >&2
}
