#!/usr/bin/env bash
# scikit-learn 1.9.1: its libgomp says that threads wait passively, and lets them spin all the same.
#
# With nothing set, `OMP_DISPLAY_ENV=verbose` prints OMP_WAIT_POLICY = 'PASSIVE'. Passive waiting ought
# to give the core away at once. But GOMP_SPINCOUNT is 300000 beside it, and 0 only where a person
# sets OMP_WAIT_POLICY=passive, whose printed value is the same.
#
# Seen: "nothing set: PASSIVE 300000", "set to passive: PASSIVE 0".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-learn==1.9.1
show() {
  env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY -u OMP_NUM_THREADS OMP_DISPLAY_ENV=verbose "$@" \
    "$folder/venv/bin/python" -c "import sklearn.utils._openmp_helpers" 2>&1 |
    sed -nE "s/.*(OMP_WAIT_POLICY|GOMP_SPINCOUNT) = '([^']*)'.*/\2/p" | tr '\n' ' '
}
unset_policy=$(show)
passive=$(show OMP_WAIT_POLICY=passive)
echo "nothing set: $unset_policy"
echo "set to passive: $passive"
[ "$unset_policy" = "PASSIVE 300000 " ]
[ "$passive" = "PASSIVE 0 " ]
echo "as described"
