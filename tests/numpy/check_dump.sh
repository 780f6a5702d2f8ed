#!/usr/bin/env bash
# Dumps a small sweep and compares it with the seed's formulas in numpy: check_dump.sh FUSEBENCH
set -euo pipefail
here=$(dirname "$0")
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done
if [[ -z ${python:-} ]]; then
  printf 'skipped: no python3 with numpy (Debian package python3-numpy)\n1 skipped\n'
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" run "$here/../../configs/quick.yaml" -o "$folder/out" --dump "$folder/dump" --quiet --oracle-cache "$folder/oracle"
"$python" "$here/check_dump.py" "$folder/dump"
