#!/usr/bin/env bash
# deb.sh WHEEL FOLDER: the files of a wheel as a Debian package, for every Debian and Ubuntu with glibc 2.28
# or later and Python 3.9 or later. The programs are in the folder `_installed` of the Python package, as in
# the wheel; /usr/bin has links to them. DEBFULLNAME and DEBEMAIL name the maintainer, as for Debian's tools.
# deb.sh --version VERSION prints the Debian form of a Python package version (PEP 440).
set -euo pipefail
umask 022

# Debian sorts `~` before everything: 1.0~~dev1, 1.0~rc1~~dev1, 1.0~rc1, 1.0. The local version after the + is
# kept, except for its separators.
debian_version() {
  local public=${1%%+*}
  local rest=${1:${#public}}
  public=$(sed -E 's/\.?dev/~~dev/g; s/\.?(a|b|rc)([0-9])/~\1\2/' <<<"$public")
  echo "$public${rest//[-_]/.}"
}

if [ "$1" = --version ]; then
  debian_version "$2"
  exit
fi
wheel=$(readlink -f "$1")
folder=$(realpath -m "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/root
modules=$root/usr/lib/python3/dist-packages
share=$root/usr/share
mkdir -p "$modules" "$root/usr/bin" "$root/DEBIAN" "$folder" \
  "$share"/{doc/unidle,lintian/overrides,man} \
  "$share"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}

# With the permissions of the wheel's files, which `python -m zipfile` drops.
python3 - "$wheel" "$stage/wheel" <<'EOF'
import os, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    for entry in wheel.infolist():
        path = wheel.extract(entry, sys.argv[2])
        if not entry.is_dir():
            os.chmod(path, 0o755 if (entry.external_attr >> 16) & 0o100 else 0o644)
EOF
info=$(echo "$stage"/wheel/unidle-*.dist-info)
version=$(sed -n 's/^Version: //p' "$info/METADATA")
debian=$(debian_version "$version")
# Of the wheel: it may have been compiled for another machine.
case $(sed -n 's/^Tag: //p' "$info/WHEEL" | head -n 1) in
  *_x86_64) architecture=amd64 ;;
  *_aarch64) architecture=arm64 ;;
  *)
    echo "deb.sh: $wheel: for no machine that is known here (x86_64, aarch64)" >&2
    exit 1
    ;;
esac
maintainer="${DEBFULLNAME:-The authors of unidle} <${DEBEMAIL:-nobody@localhost}>"
mv "$stage/wheel/unidle" "$modules/"
mkdir "$modules/$(basename "$info")"
cp "$info/METADATA" "$modules/$(basename "$info")/"
echo debian >"$modules/$(basename "$info")/INSTALLER"  # so that pip leaves it alone
for program in unidle unidle-train; do
  if [ -e "$modules/unidle/_installed/bin/$program" ]; then
    ln -s "../lib/python3/dist-packages/unidle/_installed/bin/$program" "$root/usr/bin/$program"
  fi
done
if [ -d "$stage/wheel/unidle-$version.data/data/share/man" ]; then
  cp -r "$stage/wheel/unidle-$version.data/data/share/man/." "$share/man/"
  find "$share/man" -type f -exec gzip -9n {} +
fi
unidle=$modules/unidle/_installed/bin/unidle
"$unidle" completion bash >"$share/bash-completion/completions/unidle"
"$unidle" completion zsh >"$share/zsh/vendor-completions/_unidle"
"$unidle" completion fish >"$share/fish/vendor_completions.d/unidle.fish"
cp "$info/licenses/THIRD_PARTY.md" "$share/doc/unidle/"
cat "$info/licenses/NOTICE" - >"$share/doc/unidle/copyright" <<'EOF'

Debian systems have the text of the licence in /usr/share/common-licenses/Apache-2.0.
The libraries in /usr/lib/python3/dist-packages/unidle/_installed/lib have licences of their own:
/usr/lib/python3/dist-packages/unidle/_installed/share/licenses
EOF
gzip -9n >"$share/doc/unidle/changelog.gz" <<EOF
unidle ($debian) unstable; urgency=medium

  * Version $version. CHANGELOG.md in the sources lists the changes.

 -- $maintainer  $(LC_ALL=C date -Ru ${SOURCE_DATE_EPOCH:+-d "@$SOURCE_DATE_EPOCH"})
EOF
{
  echo "# One package serves all distributions, which have these libraries in different versions."
  echo "unidle: embedded-library *"
  if [ -z "${DEBEMAIL:-}" ]; then
    echo "# The project has no mail address. Whoever publishes the package sets DEBEMAIL."
    echo "unidle: bogus-mail-host *"
    echo "unidle: bogus-mail-host-in-debian-changelog *"
  fi
} >"$share/lintian/overrides/unidle"

find "$root" -type d -exec chmod 755 {} +
cat >"$root/DEBIAN/control" <<EOF
Package: unidle
Version: $debian
Architecture: $architecture
Maintainer: $maintainer
Section: python
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: libc6 (>= 2.28), python3 (>= 3.9)
Description: finds and removes what leaves GPUs idle in PyTorch training
 Observes PyTorch training programs from within, without a change to them, says
 which cause costs most, tries what helps and measures the gain.
EOF
# The package is compiled at installation, because users cannot write .pyc files there. With dpkg --root, -d
# keeps the root folder out of the paths in these files. An administrator may have removed the folder.
for script in postinst prerm; do printf '#!/bin/sh\nset -e\n' >"$root/DEBIAN/$script"; done
cat >>"$root/DEBIAN/postinst" <<'EOF'
package=/usr/lib/python3/dist-packages/unidle
python3 -m compileall -q -d "$package" "$DPKG_ROOT$package" >/dev/null 2>&1 || true
EOF
cat >>"$root/DEBIAN/prerm" <<'EOF'
package=$DPKG_ROOT/usr/lib/python3/dist-packages/unidle
if [ -d "$package" ]; then find "$package" -depth -name __pycache__ -exec rm -r {} +; fi
EOF
chmod 755 "$root"/DEBIAN/{postinst,prerm}
# dpkg of older distributions reads xz, and no zstd.
dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/unidle_${debian}_$(dpkg --print-architecture).deb"
