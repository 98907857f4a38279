#!/usr/bin/env bash
# Gradescope runs this once, as root, while it builds the image. To make the zip file that you upload, run in a checkout
# in which `make` has run:
#
#   deploy/pack zip && cp deploy/gradescope/* zip/ && (cd zip && zip -qr ../autograder.zip .)
#
# Choose a base image with Python 3.11 or newer, such as Ubuntu 24.04, and a container with at least 3 GB of memory.
set -euo pipefail

# The memory that one notebook may use, in megabytes. If it is more than the container has left, a notebook that uses
# much memory ends the container, and Gradescope shows no result.
memory_megabytes=1500

cd "$(dirname "${BASH_SOURCE[0]}")/.."   # /autograder; this file is in /autograder/source

apt-get update
apt-get install --yes --no-install-recommends bubblewrap libseccomp2 python3-venv
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "Python 3.11 or newer is needed: choose another base image."; exit 1; }
python3 -m venv venv
# pip takes the CPU build of torch, because its version is higher than that of the build with CUDA.
venv/bin/pip install --quiet --extra-index-url https://download.pytorch.org/whl/cpu source/attention_autograder-*.whl
sed -i "0,/^memory_megabytes = .*/s//memory_megabytes = $memory_megabytes/" source/course/autograder.toml
chmod -R go-rwx source   # the answers
