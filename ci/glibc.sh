#!/bin/sh
# Rejects binaries that need a newer C library than the packages promise, or the C++ library of the machine.
#
#   sh ci/glibc.sh FILE...           binaries, tarballs and wheels; prints the version that each binary needs
#                                    GLIBC=VERSION allows another (default 2.28, that of RHEL 8)
set -eu
[ $# -gt 0 ] || { sed -n '4,5s/^# *//p' "$0" >&2; exit 2; }
most=${GLIBC:-2.28}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file; do
  mkdir "$work/file"
  case $file in
    *.tar.gz) tar -C "$work/file" -xzf "$file" ;;
    *.whl) python3 -m zipfile -e "$file" "$work/file" ;;
    *) mkdir "$work/file/bin" && cp "$file" "$work/file/bin" ;;
  esac
  find "$work/file" -type f \( -path '*/bin/*' -o -path '*/scripts/*' \) > "$work/binaries"
  [ -s "$work/binaries" ] || { echo "$file has no binary" >&2; exit 1; }
  while read -r binary; do
    # Of symbols, and of features of the dynamic loader such as GLIBC_ABI_DT_RELR.
    versions=$(objdump -p "$binary" | sed -n '/^Version References/,/^$/s/^ *0x[0-9a-f]* 0x[0-9a-f]* [0-9]* //p' | sort -uV)
    newest=$(echo "$versions" | sed -n 's/^GLIBC_\([0-9.]*\)$/\1/p' | tail -n 1)
    other=$(echo "$versions" | grep -v '^GLIBC_[0-9.]*$\|^GCC_\|^$' || :)
    if [ -n "$other" ] || [ "$(printf '%s\n' "$most" "$newest" | sort -V | tail -n 1)" != "$most" ]; then
      echo "$file: ${binary##*/} needs$(printf ' %s' ${newest:+GLIBC_$newest} $other), but at most GLIBC_$most is promised" >&2
      exit 1
    fi
    echo "$file: ${binary##*/} needs GLIBC_${newest:-none}"
  done < "$work/binaries"
  rm -rf "$work/file"
done
