#!/usr/bin/env bash
# sdks.sh NAME TAG: fetches an SDK at a tag into build/sdks, and builds with it what this repository
# has for it. A folder build/sdks/NAME that is there is used as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

name=${1:?usage: scripts/product/sdks.sh NAME TAG} tag=${2:?a tag}
folder=$PWD/build/sdks/$name
packages=$PWD/build/sdks/packages

# Clones a repository without its history.
fetch() {
  [ -d "$folder" ] || git clone --quiet --depth 1 --branch "$tag" "https://github.com/$1" "$folder"
}

case "$name" in
  micropython)
    fetch micropython/micropython
    MICROPYTHON_DIR=$folder python -m scripts.product.packages "$packages" micropython
    MICROPYTHON_DIR=$folder MICROPYTHON=$packages/micropython-build/micropython \
      python -m pytest -q tests/examples/test_existing_project.py -k native
    ;;
  pico)
    fetch raspberrypi/pico-sdk
    PICO_SDK_PATH=$folder python -m scripts.product.packages "$packages" pico
    ;;
  freertos)
    fetch FreeRTOS/FreeRTOS-Kernel
    FREERTOS_DIR=$folder python -m pytest -q tests/examples/test_existing_project.py -k three_tasks
    ;;
  riot)
    fetch RIOT-OS/RIOT
    RIOT_DIR=$folder python -m pytest -q tests/examples/test_existing_project.py -k riot
    ;;
  esp-idf) # in the container of the ESP-IDF, whose environment has idf.py
    package=$packages/esp-idf/digits_models
    python -m microtir package example:digits --format esp-idf --target esp32s3 --force \
      --package-name digits_models -o "$package"
    idf.py -C "$package/examples/run" set-target esp32s3 build
    ;;
  platformio)
    package=$packages/platformio/digits_models
    python -m microtir package example:digits --format platformio --target cortex-m4 --force \
      --package-name digits_models -o "$package"
    pio ci --lib "$package" --board nano33ble "$package/examples/run"
    ;;
  zephyr)
    [ -d "$folder" ] || west init -m https://github.com/zephyrproject-rtos/zephyr --mr "$tag" "$folder"
    (cd "$folder" && west update --narrow -o=--depth=1 && west packages pip --install)
    (cd "$folder/zephyr" && west sdk install -t arm-zephyr-eabi)
    ZEPHYR_BASE=$folder/zephyr python -m pytest -q tests/projects/test_zephyr.py -m zephyr
    ;;
  *)
    echo "sdks: there is no SDK '$name'" >&2
    exit 2
    ;;
esac
