/** The Debian package: built here and not by dpkg-deb, so that the same commit gives the same bytes everywhere. */

import { createHash } from 'node:crypto';
import { DRAIN_SECONDS, systemdUnit } from '../../src/cli/commands/service/systemd-unit.ts';
import { completions, manual, source } from './contents.ts';
import { PUBLISHER } from './publisher.ts';
import { ar, type Entry, file, gzip, type Level, tar, withFolders } from './tar.ts';

export interface DebOptions {
  readonly version: string;
  readonly arch: 'amd64' | 'arm64';
  readonly binary: Uint8Array;
  readonly notices: string;
  readonly seconds: number;
  /** Of the files that are installed; 9 by default. */
  readonly level?: Level;
}

const text = (path: string) => new TextDecoder().decode(source(path));
const packed = (data: Uint8Array | string) =>
  gzip(typeof data === 'string' ? new TextEncoder().encode(data) : data);

/** A day as Debian's changelogs write it. */
const debianDate = (seconds: number) =>
  new Date(seconds * 1000).toUTCString().replace('GMT', '+0000');

function contents(options: DebOptions): Entry[] {
  const { version, seconds } = options;
  const made = completions();
  const doc = 'usr/share/doc/hopgate';
  const changelog = `hopgate (${version}) stable; urgency=medium

  * See CHANGELOG.md.gz.

 -- ${PUBLISHER.maintainer}  ${debianDate(seconds)}
`;
  const unit = systemdUnit({
    scope: 'system',
    account: 'static',
    program: ['/usr/bin/hopgate'],
    drain: DRAIN_SECONDS,
  });
  return [
    file('etc/hopgate/hopgate.yaml', source('packaging/deb/hopgate.yaml')),
    file('usr/bin/hopgate', options.binary, 0o755),
    file('usr/lib/systemd/system/hopgate.service', unit),
    file('usr/lib/sysusers.d/hopgate.conf', source('packaging/deb/sysusers.conf')),
    file('usr/share/bash-completion/completions/hopgate', made['completions/hopgate.bash']),
    file('usr/share/zsh/vendor-completions/_hopgate', made['completions/_hopgate']),
    file('usr/share/fish/vendor_completions.d/hopgate.fish', made['completions/hopgate.fish']),
    file('usr/share/man/man1/hopgate.1.gz', packed(manual(version))),
    file(`${doc}/examples/hopgate.env`, source('packaging/hopgate.env')),
    file(`${doc}/README.md.gz`, packed(source('README.md'))),
    file(`${doc}/README.zh-CN.md.gz`, packed(source('README.zh-CN.md'))),
    file(`${doc}/CHANGELOG.md.gz`, packed(source('CHANGELOG.md'))),
    file(`${doc}/changelog.gz`, packed(changelog)),
    file(`${doc}/THIRD-PARTY-NOTICES.txt.gz`, packed(options.notices)),
    file(`${doc}/copyright`, copyright()),
    file('usr/share/lintian/overrides/hopgate', source('packaging/deb/lintian-overrides')),
  ];
}

const copyright = () =>
  text('packaging/deb/copyright')
    .replaceAll('@NAME@', PUBLISHER.name)
    .replaceAll('@MAINTAINER@', PUBLISHER.maintainer)
    .replaceAll('@REPOSITORY@', PUBLISHER.repository);

function control({ version, arch }: DebOptions, entries: readonly Entry[]): string {
  const size = Math.ceil(entries.reduce((sum, { data }) => sum + data.length, 0) / 1024);
  return text('packaging/deb/control')
    .replaceAll('@VERSION@', version)
    .replaceAll('@ARCH@', arch)
    .replaceAll('@SIZE@', String(size))
    .replaceAll('@MAINTAINER@', PUBLISHER.maintainer)
    .replaceAll('@HOMEPAGE@', PUBLISHER.homepage);
}

const dotted = (entries: readonly Entry[]): Entry[] => [
  { path: './', mode: 0o755, data: new Uint8Array(0) },
  ...entries.map((entry) => ({ ...entry, path: `./${entry.path}` })),
];

/** The bytes of `hopgate_<version>_<arch>.deb`. */
export function debianPackage(options: DebOptions): Uint8Array {
  const { seconds } = options;
  const entries = contents(options);
  const sums = entries
    .filter(({ path }) => !path.startsWith('etc/'))
    .map(({ path, data }) => `${createHash('md5').update(data).digest('hex')}  ${path}\n`);
  const scripts = ['postinst', 'prerm', 'postrm'].map((name) =>
    file(name, source(`packaging/deb/${name}`), 0o755),
  );
  const meta = [
    file('control', control(options, entries)),
    file('conffiles', '/etc/hopgate/hopgate.yaml\n'),
    file('md5sums', sums.join('')),
    ...scripts,
  ];
  return ar(
    [
      ['debian-binary', new TextEncoder().encode('2.0\n')],
      ['control.tar.gz', gzip(tar(dotted(withFolders(meta)), seconds))],
      ['data.tar.gz', gzip(tar(dotted(withFolders(entries)), seconds), options.level)],
    ],
    seconds,
  );
}
