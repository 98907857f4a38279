#!/usr/bin/env bash
# Gradescope runs this once, as root, while it builds the image. The zip file to upload, from a checkout in which `make`
# has run:
#
#   deploy/pack zip && cp deploy/gradescope/* zip/ && (cd zip && zip -qr ../autograder.zip .)
#
# Choose a base image with Python 3.11 or newer, such as Ubuntu 24.04.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."   # /autograder; this file is in /autograder/source

apt-get update
apt-get install --yes --no-install-recommends bubblewrap libseccomp2 python3-venv
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "Python 3.11 or newer is needed: choose another base image."; exit 1; }
python3 -m venv venv
# Of the torch that the wheel asks for, pip takes the CPU build: its version is the higher one.
venv/bin/pip install --quiet --extra-index-url https://download.pytorch.org/whl/cpu source/attention_autograder-*.whl
chmod -R go-rwx source   # the answers
