#!/usr/bin/env bash
# Prepares this checkout on Debian or Ubuntu. Usage: scripts/setup.sh run|dev|unit|product|journeys|fuzz
#   run   .venv with microtir and what it needs
#   dev   the same, what tests and checks need, and the C compilers that the tests use
#   unit  what those tests need that use no tools: no C compiler is looked for
#   product  what builds the site, the wheel and packages of models, and a browser for the studio
#   journeys  PyTorch and Keras, whose models are compared with what is read of them
#   fuzz  atheris, which counts the branches that a damaged file reaches in a reader
# Variables: PYTHON, the interpreter, for which a .venv of another one is made anew;
#            VENV, another folder than .venv.
# Does nothing where a finished run with the same pyproject.toml is recorded in .venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-}
venv=${VENV:-.venv}
# What the Python packages take, measured on x86-64; of Debian's packages apt tells it.
case "$mode" in
  run) target=. wheels="22 MB to load, 160 MB on disk" ;;
  unit) target='.[unit]' wheels="25 MB to load, 170 MB on disk" ;;
  product) target='.[product]' wheels="80 MB to load, 430 MB on disk" ;;
  dev) target='.[dev]' wheels="150 MB to load, 680 MB on disk" ;;
  journeys) target='.[journeys]' wheels="1.6 GB on disk with a PyTorch for CPUs alone" ;;
  fuzz) target='.[fuzz]' wheels="80 MB to load, 300 MB on disk" ;;
  *)
    echo "usage: scripts/setup.sh run|dev|unit|product|journeys|fuzz" >&2
    exit 2
    ;;
esac

die() {
  printf 'setup: %s\n' "$@" >&2
  exit 3
}

# Installs Debian packages where that needs no password; says what to install elsewhere.
apt_install() {
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    root=(sudo -n)
  fi
  if ! command -v apt-get >/dev/null || ! "${root[@]}" true 2>/dev/null; then
    die "missing: $*" "install it and run the command again; on Debian or Ubuntu:" \
      "  sudo apt-get install --no-install-recommends $*" "$(apt_amount "$@")"
  fi
  echo "setup: missing: $*"
  "${root[@]}" apt-get -q update </dev/null
  echo "setup: $(apt_amount "$@")"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q install -y --no-install-recommends "$@" </dev/null
}

# How much apt would load for packages, and how much they take on disk; nothing is changed.
apt_amount() {
  command -v apt-get >/dev/null || return 0
  local said
  said=$(LC_ALL=C apt-get -o Debug::NoLocking=1 install --assume-no --no-install-recommends "$@" \
    </dev/null 2>/dev/null | grep -E '^(Need to get|After this operation)') || true
  echo "${said//$'\n'/ }"
}

# Whether a compiler makes a program: it may be there without the headers of a C library, or
# without the library.
builds() {
  local header=stdint.h
  [ "${*: -1}" != -xc++ ] || header=cstdint
  printf '#include <%s>\nint main(void) { return 0; }\n' "$header" |
    "$@" -o "$scratch/program" - >/dev/null 2>&1
}

# What builds and emulates projects for boards; board.toml of a board names its packages, too.
board_packages() {
  command -v cmake >/dev/null || missing+=(cmake)
  command -v qemu-system-arm >/dev/null || missing+=(qemu-system-arm)
  command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
  builds aarch64-linux-gnu-gcc -xc || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
  command -v qemu-system-riscv32 >/dev/null || missing+=(qemu-system-misc)
  builds riscv64-unknown-elf-gcc --specs=picolibc.specs -xc ||
    missing+=(gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf)
  arduino_packages
  command -v ninja >/dev/null || missing+=(ninja-build)
}

# What compiles a sketch, and runs it.
arduino_packages() {
  builds avr-gcc -xc || missing+=(gcc-avr avr-libc)
  [ -e /usr/include/simavr/sim_avr.h ] || missing+=(libsimavr-dev)
  [ -e /usr/include/libelf.h ] || missing+=(libelf-dev)
  command -v arduino-builder >/dev/null || missing+=(arduino-builder)
  command -v arduino-ctags >/dev/null || missing+=(arduino-ctags)
  [ -d /usr/share/arduino/hardware/arduino/avr ] || missing+=(arduino-core-avr)
}

# Sets `missing` to the Debian packages that are not there.
find_missing() {
  missing=()
  builds gcc -xc || missing+=(gcc libc6-dev)
  if [ "$mode" = product ]; then
    command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
    command -v chromedriver >/dev/null || missing+=(chromium-driver)
    command -v cargo >/dev/null || missing+=(cargo)
    command -v rustc >/dev/null || missing+=(rustc)
    builds arm-none-eabi-gcc --specs=nosys.specs -xc ||
      missing+=(gcc-arm-none-eabi libnewlib-arm-none-eabi)
    arduino_packages
  fi
  if [ "$mode" = dev ]; then
    builds g++ -xc++ || missing+=(g++)
    builds clang -xc || missing+=(clang)
    command -v clang-tidy >/dev/null || missing+=(clang-tidy)
    command -v git >/dev/null || missing+=(git)
    command -v cppcheck >/dev/null || missing+=(cppcheck)
    command -v ccache >/dev/null || missing+=(ccache)
    command -v frama-c >/dev/null || missing+=(frama-c-base)
    builds arm-none-eabi-gcc --specs=nosys.specs -xc ||
      missing+=(gcc-arm-none-eabi libnewlib-arm-none-eabi)
    builds arm-none-eabi-g++ --specs=nosys.specs -xc++ ||
      missing+=(libstdc++-arm-none-eabi-newlib)
    board_packages
  fi
}

system_packages() {
  local missing
  find_missing
  [ "${#missing[@]}" -gt 0 ] || return 0
  apt_install "${missing[@]}"
  hash -r
  find_missing
  [ "${#missing[@]}" -eq 0 ] ||
    die "installed, and still of no use: ${missing[*]}" \
      "see which compiler comes first on the PATH, and that it compiles a file with <stdint.h>"
}

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

# Prints the interpreter to use: $PYTHON, else the first that is new enough.
find_python() {
  local candidate
  if [ -n "${PYTHON:-}" ]; then
    is_new_enough "$PYTHON" || die "PYTHON=$PYTHON is no Python 3.10 or newer"
    echo "$PYTHON"
    return
  fi
  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$candidate" >/dev/null && is_new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  die "no Python 3.10 or newer; install one, or set PYTHON to its path"
}

# Where an interpreter, or that of a virtual environment, is installed, and its version.
identity() {
  "$1" -c 'import sys; print(sys.base_prefix, *sys.version_info[:3])' 2>/dev/null
}

# Whether the virtual environment works and, if an interpreter was asked for, is of that one.
is_usable() {
  "$venv/bin/python" -m pip --version >/dev/null 2>&1 || return 1
  [ -z "${PYTHON:-}" ] || [ "$(identity "$venv/bin/python")" = "$(identity "$PYTHON")" ]
}

virtual_environment() {
  local python
  python=$(find_python)
  # Debian splits ensurepip off into python3-venv: without it a .venv has no pip.
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    apt_install "$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')"
  fi
  rm -rf "$venv"
  "$python" -m venv "$venv"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The path is part of the key: an editable install of a checkout that was moved points nowhere.
key=$({
  pwd
  cat pyproject.toml scripts/setup.sh
} | sha256sum | cut -c1-16)

[ "$mode" = unit ] || system_packages
if ! is_usable; then
  virtual_environment
elif [ -e "$venv/.ready-dev-$key" ] || [ -e "$venv/.ready-$mode-$key" ]; then
  exit 0
fi
echo "setup: installing microtir and its dependencies into $venv (about $wheels)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$target"
touch "$venv/.ready-$mode-$key"
