#!/bin/sh
# Prints the Python that `make setup` asks uv for, and says why on stderr.
# ML Metadata 1.21 and TFDV 1.21 have wheels for glibc 2.39 and newer, on Python 3.11 to 3.13. Where these run,
# the environment is TFX 1.21's own set, which uv.lock holds for Python 3.12 and newer; elsewhere it is the set
# for Python 3.11, with older releases of the two.
# Usage: choose_python.sh
set -eu

glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc //p')
major=${glibc%%.*} minor=${glibc#*.}
minor=${minor%%.*}
if [ "${major:-0}" -gt 2 ] || { [ "${major:-0}" = 2 ] && [ "$minor" -ge 39 ]; }; then
  echo "setup: glibc $glibc has what TFX 1.21's own libraries need (2.39): its set, on Python 3.12 or 3.13" >&2
  echo ">=3.12,<3.14"
else
  echo "setup: glibc ${glibc:-missing}, and TFX 1.21's own libraries need 2.39: the set for older systems, on Python 3.11" >&2
  echo "3.11"
fi
