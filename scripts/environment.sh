# Sourced by ./run and ./test: where things are kept, and getting what is missing.
# Everything that is fetched or built stays in one cache directory outside the repository.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/logstead"
mkdir -p "$cache"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"
# rustup's default place, for shells that have not read its profile.
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"

say() { printf '\033[1m== %s\033[0m\n' "$*"; }
fail() { printf '\033[31m%s\033[0m\n' "$*" >&2; exit 1; }

# packages PROGRAM:PACKAGE... installs the Debian packages whose program is missing.
packages() {
    local missing=() pair
    for pair in "$@"; do
        # A path ending in /* stands for "any version of it".
        if [[ ${pair%%:*} == /* ]]; then
            compgen -G "${pair%%:*}" > /dev/null || missing+=("${pair#*:}")
        else
            command -v "${pair%%:*}" > /dev/null || missing+=("${pair#*:}")
        fi
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    say "installing ${missing[*]}"
    command -v apt-get > /dev/null || fail "please install: ${missing[*]}"
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# What building needs: a linker and a C compiler (the allocator is C; the fuzzing engine C++).
need_build() {
    packages cc:gcc c++:g++ ld:binutils
    command -v cargo > /dev/null || fail "no Rust toolchain: see https://rustup.rs"
}

# AddressSanitizer's runtime comes with most toolchains, and the compiler must accept its flag.
need_sanitizer() {
    compgen -G "$(rustc --print sysroot)/lib/rustlib/$1/lib/librustc-*_rt.asan.a" > /dev/null \
        || fail "this Rust toolchain has no AddressSanitizer for $1: use one from rustup"
}

# A minimal Rust toolchain has neither of these.
need_lints() {
    cargo fmt --version > /dev/null 2>&1 && cargo clippy --version > /dev/null 2>&1 || rustup component add rustfmt clippy
}

# The Python of the end-to-end tests, in a virtual environment that follows tests/e2e/requirements.txt.
need_python() {
    local requirements="$repository/tests/e2e/requirements.txt" stamp="$cache/venv/requirements.txt"
    if ! cmp -s "$requirements" "$stamp"; then
        # Debian's python3 without python3-venv has the module but not the installer in it.
        python3 -c 'import ensurepip, venv' 2> /dev/null || packages /nonexistent:python3-venv
        say "Python environment in $cache/venv"
        python3 -m venv "$cache/venv"
        "$cache/venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
        cp "$requirements" "$stamp"
    fi
    python="$cache/venv/bin/python"
}

# The client programs and libraries of the end-to-end tests.
need_clients() {
    packages psql:postgresql-client "/usr/lib/postgresql/*/bin/pgbench:postgresql" \
        javac:default-jdk-headless node:nodejs npm:npm
    command -v pgbench > /dev/null || fail "no pgbench on the PATH (Debian keeps a wrapper in postgresql-client-common)"

    local jdbc_version=42.7.4
    export E2E_JDBC_JAR="$cache/postgresql-$jdbc_version.jar"
    if [ ! -s "$E2E_JDBC_JAR" ]; then
        packages mvn:maven
        say "JDBC driver $jdbc_version"
        mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
            -Dartifact=org.postgresql:postgresql:$jdbc_version -DoutputDirectory="$cache"
    fi

    local package="$repository/tests/e2e/clients/node/package.json"
    export E2E_NODE_MODULES="$cache/node/node_modules"
    if ! cmp -s "$package" "$cache/node/package.json" || [ ! -d "$E2E_NODE_MODULES/pg" ]; then
        say "node-postgres"
        mkdir -p "$cache/node"
        cp "$package" "$cache/node/package.json"
        (cd "$cache/node" && npm install --loglevel=error --no-fund --no-audit)
    fi
}
