#!/bin/sh
# Installs neuralviz from this checkout into a folder, in the exact versions of constraints.txt.
#
#     deploy/install.sh TARGET              a virtual environment, which needs the checkout no more
#     deploy/install.sh TARGET DATA UID     also makes the data folder, which that user may write
#
# PYTHON names another Python than python3; TORCH=cpu or TORCH=cuda chooses the build of PyTorch.
# Run it again to install a newer checkout into the same folder; stop the server first.
set -eu

if [ $# -ne 1 ] && [ $# -ne 3 ]; then
  echo "Usage: $0 TARGET [DATA UID]" >&2
  exit 2
fi
checkout=$(cd "$(dirname "$0")/.." && pwd)
target=$1

# The set-up replaces a folder that is no working environment, so it must not be somebody's files.
if [ -e "$target" ] && [ ! -e "$target/pyvenv.cfg" ] && [ ! -e "$target/.unfinished" ] &&
  [ -n "$(ls -A "$target")" ]; then
  echo "$target has other files in it. Name a new folder, or one that this script has made." >&2
  exit 2
fi

unset PYTHONPATH PYTHONHOME
# CI: no progress bars. The others: nothing is left in a cache or in the checkout.
export CI=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
NEURALVIZ_VENV=$target "${PYTHON:-python3}" "$checkout/scripts/set_up.py" server \
  ${TORCH:+--torch "$TORCH"}

if [ $# -eq 3 ]; then
  mkdir -p "$2"
  chown "$3:$3" "$2"
  chmod 700 "$2"
fi

"$target/bin/neuralviz" --version
