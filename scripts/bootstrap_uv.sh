#!/bin/sh
# Puts uv (and, on a machine without a C++ compiler, the ziglang compiler from pip) into a folder.
# Usage: bootstrap_uv.sh TARGET_DIR UV_VERSION ZIGLANG_VERSION
# Needs a python3 (3.8 or newer) with pip; $PYTHON3 names another interpreter.
set -eu

target=$1 uv_version=$2 ziglang_version=$3
python3=${PYTHON3:-python3}
part=$target.part

# In /, a version manager does not apply a .python-version of the folder to python3.
cd /
if ! "$python3" -m pip --version >/dev/null 2>&1; then
  echo "setup: '$python3 -m pip' does not run, and pip is needed to fetch uv." >&2
  echo "Install pip for it, or name an interpreter that has it (make PYTHON3=...)," >&2
  echo "or your own uv (make UV=/path/to/uv)." >&2
  exit 1
fi

# One dependency (pyfarmhash, of TFDV) is published as C++ source only.
packages=uv==$uv_version
compiler=
if ! command -v c++ >/dev/null && ! command -v g++ >/dev/null; then
  compiler=yes
  packages="$packages ziglang==$ziglang_version"
fi

echo "setup: installing $packages into $target" >&2
rm -rf "$target" "$part"
mkdir -p "$part"
# --target needs neither venv nor ensurepip, and leaves the interpreter's own packages alone.
# shellcheck disable=SC2086  # the packages are words
if ! "$python3" -m pip install --quiet --no-input --disable-pip-version-check \
  --target "$part" $packages >"$part/pip.log" 2>&1; then
  cat "$part/pip.log" >&2
  echo "setup: pip could not install $packages; its message is above." >&2
  rm -rf "$part"
  exit 1
fi

if [ -n "$compiler" ]; then
  mkdir "$part/compiler"
  for language in cc c++; do
    cat >"$part/compiler/$language" <<WRAPPER
#!/bin/sh
# Debian's Python asks for -Bsymbolic-functions, which zig's linker does not know; it only makes loading faster.
for argument do
  shift
  [ "\$argument" = -Wl,-Bsymbolic-functions ] || set -- "\$@" "\$argument"
done
exec "$target/ziglang/zig" $language "\$@"
WRAPPER
    chmod +x "$part/compiler/$language"
  done
fi
mv "$part" "$target"
