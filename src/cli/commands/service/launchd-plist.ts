/** The launchd property list, for an agent of a user or a daemon of the machine. */

import type { UnitOptions } from './systemd-unit.ts';

export const LABEL = 'hopgate';

export interface PlistOptions extends Omit<UnitOptions, 'account'> {
  /** Where stderr goes. */
  readonly log: string;
  /** `$HOPGATE_HOME`; left out: `~/.hopgate`. */
  readonly home?: string;
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const string = (text: string) => `<string>${escaped(text)}</string>`;

/** The file for launchd.plist(5): started at login or boot, started again when it fails. */
export function launchdPlist(options: PlistOptions): string {
  const { program, config, drain, log, home } = options;
  const words = [...program, 'serve', '--drain', String(drain)];
  if (config !== undefined) words.push('--config', config);
  const environment =
    home === undefined
      ? ''
      : `  <key>EnvironmentVariables</key>
  <dict>
    <key>HOPGATE_HOME</key>
    ${string(home)}
  </dict>
`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  ${string(LABEL)}
  <key>ProgramArguments</key>
  <array>
${words.map((text) => `    ${string(text)}`).join('\n')}
  </array>
${environment}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>5</integer>
  <key>ExitTimeOut</key>
  <integer>${drain + 30}</integer>
  <key>SoftResourceLimits</key>
  <dict>
    <key>NumberOfFiles</key>
    <integer>65536</integer>
  </dict>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardErrorPath</key>
  ${string(log)}
</dict>
</plist>
`;
}
