#!/bin/sh
# Installs the given Debian packages if they are missing and the user is root; otherwise lists those that are missing.
set -eu
missing=""
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
  echo "not a Debian system: if the build fails, install what these packages hold:$missing" >&2
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "these Debian packages are missing; OTF2 archives cannot be read without them:" >&2
  echo "  sudo apt-get install$missing" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -qq -y --no-install-recommends $missing >/dev/null
