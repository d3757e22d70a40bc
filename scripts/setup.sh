#!/usr/bin/env bash
# Prepares this checkout on Debian or Ubuntu. Usage: scripts/setup.sh run|dev
#   run  .venv with microtir and what it needs
#   dev  the same, what tests and checks need, and the C compilers that the tests use
# Does nothing where a finished run with the same pyproject.toml is recorded in .venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-}
case "$mode" in
  run | dev) ;;
  *)
    echo "usage: scripts/setup.sh run|dev" >&2
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
      "  sudo apt-get install $*"
  fi
  echo "setup: installing $*"
  "${root[@]}" apt-get -q update
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q install -y --no-install-recommends "$@"
}

# A cross compiler without its C or C++ library is found, but cannot link.
arm_has() {
  [ -e "$(arm-none-eabi-gcc -print-file-name="$1" 2>/dev/null)" ]
}

# What builds and emulates projects for boards; board.toml of a board names its packages, too.
board_packages() {
  command -v cmake >/dev/null || missing+=(cmake)
  command -v qemu-system-arm >/dev/null || missing+=(qemu-system-arm)
  command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
  command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
  [ -d /usr/aarch64-linux-gnu/include ] || missing+=(libc6-dev-arm64-cross)
  command -v qemu-system-riscv32 >/dev/null || missing+=(qemu-system-misc)
  command -v riscv64-unknown-elf-gcc >/dev/null || missing+=(gcc-riscv64-unknown-elf)
  [ -d /usr/lib/picolibc/riscv64-unknown-elf ] || missing+=(picolibc-riscv64-unknown-elf)
  command -v avr-gcc >/dev/null || missing+=(gcc-avr)
  [ -d /usr/lib/avr/include ] || missing+=(avr-libc)
  [ -e /usr/include/simavr/sim_avr.h ] || missing+=(libsimavr-dev)
  [ -e /usr/include/libelf.h ] || missing+=(libelf-dev)
  command -v arduino-builder >/dev/null || missing+=(arduino-builder)
  command -v arduino-ctags >/dev/null || missing+=(arduino-ctags)
  [ -d /usr/share/arduino/hardware/arduino/avr ] || missing+=(arduino-core-avr)
  command -v ninja >/dev/null || missing+=(ninja-build)
}

system_packages() {
  local missing=()
  command -v gcc >/dev/null || missing+=(gcc libc6-dev)
  if [ "$mode" = dev ]; then
    command -v g++ >/dev/null || missing+=(g++)
    command -v clang >/dev/null || missing+=(clang)
    command -v git >/dev/null || missing+=(git)
    command -v cppcheck >/dev/null || missing+=(cppcheck)
    command -v arm-none-eabi-gcc >/dev/null || missing+=(gcc-arm-none-eabi)
    arm_has libc.a || missing+=(libnewlib-arm-none-eabi)
    arm_has libstdc++.a || missing+=(libstdc++-arm-none-eabi-newlib)
    board_packages
  fi
  [ "${#missing[@]}" -eq 0 ] || apt_install "${missing[@]}"
}

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

# Prints the interpreter to use: $PYTHON, else the first that is new enough.
find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$candidate" >/dev/null && is_new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  die "no Python 3.10 or newer; install one, or set PYTHON to its path"
}

virtual_environment() {
  if .venv/bin/python -m pip --version >/dev/null 2>&1; then
    return
  fi
  local python
  python=$(find_python)
  # Debian splits ensurepip off into python3-venv: without it a .venv has no pip.
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    apt_install "$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')"
  fi
  rm -rf .venv
  "$python" -m venv .venv
}

# The path is part of the key: an editable install of a checkout that was moved points nowhere.
key=$({
  pwd
  cat pyproject.toml scripts/setup.sh
} | sha256sum | cut -c1-16)

system_packages
if [ -e ".venv/.ready-dev-$key" ] || [ -e ".venv/.ready-$mode-$key" ]; then
  exit 0
fi
virtual_environment
target=.
[ "$mode" = run ] || target='.[dev]'
echo "setup: installing microtir and its dependencies into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$target"
touch ".venv/.ready-$mode-$key"
