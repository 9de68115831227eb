#!/bin/sh
# Installs hopgate from a release: picks the archive for this machine, checks its sum before anything is
# put anywhere, and writes down what it put where, so that --uninstall can take it back.
#
#   sh install.sh --base-url URL [--prefix DIR]     into DIR/bin (and share), default ~/.local
#   sh install.sh --uninstall [--prefix DIR]
#
# URL is the folder that holds SHA256SUMS and the archives; a local folder will do.
set -eu

say() { printf '%s\n' "$*"; }
die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

usage() {
  say 'usage: install.sh --base-url URL [--prefix DIR]'
  say '       install.sh --uninstall [--prefix DIR]'
  say 'Installs hopgate into DIR/bin; DIR is ~/.local unless given.'
  say 'HOPGATE_BASE_URL may stand for --base-url.'
}

# What the archives call this machine: linux-x64, linux-arm64-musl, darwin-arm64, ...
machine() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) die "there is no build for $(uname -s)" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) die "there is no build for $(uname -m)" ;;
  esac
  # A shell under Rosetta believes to be on an Intel machine.
  if [ "$os" = darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then
    arch=arm64
  fi
  libc=
  if [ "$os" = linux ]; then
    case $( (ldd --version 2>&1 || true) | tr '[:upper:]' '[:lower:]') in
      *musl*) libc=-musl ;;
      *glibc* | *'gnu libc'*) ;;
      *) for loader in /lib/ld-musl-*; do [ ! -e "$loader" ] || libc=-musl; done ;;
    esac
  fi
  say "$os-$arch$libc"
}

# fetch NAME FILE: from a web address or a local folder.
fetch() {
  case $base in
    http://* | https://*)
      if have curl; then
        curl --fail --silent --show-error --location --output "$2" "$base/$1"
      elif have wget; then
        wget -q -O "$2" "$base/$1"
      else
        die 'neither curl nor wget is here'
      fi
      ;;
    file://*) cp "${base#file://}/$1" "$2" ;;
    *) cp "$base/$1" "$2" ;;
  esac || die "cannot get $base/$1"
}

sha256() {
  if have sha256sum; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif have shasum; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif have openssl; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    die 'no sha256sum, shasum or openssl here: the download cannot be checked'
  fi
}

# place FILE PATH MODE: whole or not at all; a program that runs is replaced, not written into.
place() {
  mkdir -p "$(dirname "$prefix/$2")"
  cp "$1" "$prefix/$2.new"
  chmod "$3" "$prefix/$2.new"
  mv -f "$prefix/$2.new" "$prefix/$2"
  say "$2" >>"$work/list"
}

# macOS ends a program whose signature does not fit; archives made elsewhere may need a new one.
sign() {
  [ "$(uname -s)" = Darwin ] && have codesign || return 0
  codesign --verify "$1" 2>/dev/null && return 0
  codesign --force --sign - "$1" || die 'codesign cannot sign the program'
  say 'Signed for this machine.'
}

install() {
  target=$(machine)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  fetch SHA256SUMS "$work/sums"
  # "<64 hex digits>  hopgate-<version>-<target>.tar.gz"; a version begins with a digit.
  line=$(grep -E "^[0-9a-f]{64}  hopgate-[0-9][0-9A-Za-z.+-]*-$target\.tar\.gz\$" "$work/sums" |
    grep -v -E -- "-(linux|darwin)-.*-$target\.tar\.gz\$" || true)
  [ -n "$line" ] || die "$base has no archive for $target"
  [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || die "$base has several archives for $target"
  expected=${line%% *}
  archive=${line##* }
  say "Fetching $archive"
  fetch "$archive" "$work/archive"
  found=$(sha256 "$work/archive")
  if [ "$found" != "$expected" ]; then
    die "$archive does not match SHA256SUMS: it is truncated or was changed.
  expected $expected
  found    $found
Nothing was installed."
  fi
  folder=${archive%.tar.gz}
  (cd "$work" && gzip -dc archive | tar -xf -) || die "$archive cannot be unpacked"
  sign "$work/$folder/hopgate"
  version=$("$work/$folder/hopgate" version) || die 'the program does not run on this machine'

  : >"$work/list"
  place "$work/$folder/hopgate" bin/hopgate 755
  place "$work/$folder/man/hopgate.1" share/man/man1/hopgate.1 644
  place "$work/$folder/completions/hopgate.bash" share/bash-completion/completions/hopgate 644
  place "$work/$folder/completions/_hopgate" share/zsh/site-functions/_hopgate 644
  place "$work/$folder/completions/hopgate.fish" share/fish/vendor_completions.d/hopgate.fish 644
  place "$work/$folder/LICENSE" share/doc/hopgate/LICENSE 644
  place "$work/$folder/THIRD-PARTY-NOTICES.txt" share/doc/hopgate/THIRD-PARTY-NOTICES.txt 644
  list=share/hopgate/installed
  say "$list" >>"$work/list"
  mkdir -p "$prefix/share/hopgate"
  cp "$work/list" "$prefix/$list"

  say "Installed $version"
  say "     into $prefix/bin/hopgate, with manual page and completions in $prefix/share"
  case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) say "$prefix/bin is not in your PATH: add it, or call the program by its full name." ;;
  esac
  say 'Next: hopgate init'
}

uninstall() {
  list=$prefix/share/hopgate/installed
  [ -f "$list" ] || die "nothing that install.sh put there is in $prefix"
  while IFS= read -r path; do
    # Only what was put there; an edited list leads nowhere else.
    case $path in
      bin/hopgate | share/*) ;;
      *) continue ;;
    esac
    case /$path/ in */../*) continue ;; esac
    rm -f "$prefix/$path"
    say "removed $prefix/$path"
    # Folders that are empty now, up to the prefix.
    folder=$(dirname "$path")
    while [ "$folder" != . ] && rmdir "$prefix/$folder" 2>/dev/null; do
      folder=$(dirname "$folder")
    done
  done <<EOF
$(cat "$list")
EOF
  say 'Configuration (~/.config/hopgate) and state (~/.hopgate) were left where they are.'
}

# Everything above is only read; a script that was cut off on its way does nothing.
main() {
  base=${HOPGATE_BASE_URL:-}
  prefix=${HOME:-}/.local
  action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --base-url=*) base=${1#*=} ;;
      --prefix=*) prefix=${1#*=} ;;
      --base-url | --prefix)
        [ $# -ge 2 ] || die "$1 needs a value"
        if [ "$1" = --prefix ]; then prefix=$2; else base=$2; fi
        shift
        ;;
      --uninstall) action=uninstall ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; die "unknown: $1" ;;
    esac
    shift
  done
  case $prefix in
    /.local) die 'HOME is not set: give --prefix DIR' ;;
    /*) ;;
    '') die '--prefix needs a folder' ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
  base=${base%/}
  [ "$action" = uninstall ] || [ -n "$base" ] || die 'where from? --base-url URL'
  $action
}

main "$@"
