#!/bin/sh
# Gathers what a Hugging Face Space needs: deploy/huggingface/gather.sh FOLDER
#
# Takes the files as they were committed last. A Space wants its Dockerfile and its README at the top.
set -eu

if [ $# -ne 1 ]; then
  echo "Usage: $0 FOLDER" >&2
  exit 2
fi
mkdir -p "$1"
if [ -n "$(ls -A "$1")" ]; then
  echo "$1 is not empty. Name a new folder." >&2
  exit 2
fi
git -C "$(dirname "$0")/../.." archive HEAD -- . ':!docs' ':!tests' ':!benchmarks' | tar -x -C "$1"
mv "$1/deploy/huggingface/README.md" "$1/README.md"
mv "$1/deploy/Dockerfile" "$1/Dockerfile"

# The Space's page shows the app in a frame, where browsers keep back the cookie that Streamlit wants
# with an upload.
cat >>"$1/Dockerfile" <<'END'
ENV NEURALVIZ_DEMO=1 STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION=false
END
