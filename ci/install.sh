#!/bin/sh
# Installs what cargo built: binaries, manual pages, completions, examples.
#
#   sh ci/install.sh FOLDER_OF_BINARIES          below $DESTDIR$PREFIX (default /usr/local)
#   sh ci/install.sh --remove                    removes all installed files
set -eu
cd "$(dirname "$0")/.."
prefix=${DESTDIR:-}${PREFIX:-/usr/local}
share=$prefix/share
zsh=$share/zsh/${ZSH_FOLDER:-site-functions}

if [ "$1" = --remove ]; then
  rm -f "$prefix/bin/hopmap" "$prefix/bin/hopmap-query" "$prefix/bin/hopmap-ranks" "$share/man/man1/hopmap.1" "$share/man/man1/hopmap-"*.1
  rm -f "$share/bash-completion/completions/hopmap" "$zsh/_hopmap" "$share/fish/vendor_completions.d/hopmap.fish"
  rm -rf "$share/doc/hopmap"
  exit 0
fi

binaries=$1
install -Dm 755 "$binaries/hopmap" "$prefix/bin/hopmap"
if [ -x "$binaries/hopmap-query" ]; then install -Dm 755 "$binaries/hopmap-query" "$prefix/bin/hopmap-query"; fi
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$binaries/hopmap" man "$pages"
if [ -x "$binaries/hopmap-ranks" ]; then
  install -Dm 755 "$binaries/hopmap-ranks" "$prefix/bin/hopmap-ranks"
  cp ci/debian/hopmap-ranks.1 "$pages"
fi
install -d "$share/man/man1"
install -m 644 "$pages"/*.1 "$share/man/man1"
for shell in bash zsh fish; do "$binaries/hopmap" completions $shell > "$pages/$shell"; done
install -Dm 644 "$pages/bash" "$share/bash-completion/completions/hopmap"
install -Dm 644 "$pages/zsh" "$zsh/_hopmap"
install -Dm 644 "$pages/fish" "$share/fish/vendor_completions.d/hopmap.fish"

# Pipelines find the samples next to them, as in the source tree. The files of a trace are many and small.
examples=$share/doc/hopmap/examples
for file in $(find pipelines sample-instances sample-traces sample-topologies sample-schedules sample-networks -type f ! -path '*/out/*' ! -path '*/.hopmap/*'); do
  install -Dm 644 "$file" "$examples/$file"
done

# The book as Markdown, and the systemd units and the gzip for DMTCP to which its pages refer.
for file in $(find docs -type f); do
  install -Dm 644 "$file" "$share/doc/hopmap/$file"
done
chmod 755 "$share/doc/hopmap/docs/dmtcp/gzip"
