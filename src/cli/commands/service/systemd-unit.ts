/** The systemd unit: one text for `hopgate service`, the archives and the Debian package. */

export interface UnitOptions {
  readonly scope: 'system' | 'user';
  /** The program and the words before `serve`. */
  readonly program: readonly string[];
  /** An absolute path for `--config`; left out: found in the usual places. */
  readonly config?: string;
  /** Whom the system service runs as: an account systemd makes up, or one that exists. */
  readonly account?: 'dynamic' | 'static';
  /** Seconds that a stopping server waits for open streams. */
  readonly drain: number;
}

/** Seconds given to the longest stream: thinking models have been seen to answer for a quarter of an hour. */
export const DRAIN_SECONDS = 1800;

/** A word of ExecStart: quoted, and nothing in it expanded (systemd.service(5), "Command lines"). */
const word = (text: string) => {
  const literal = text.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w@%+=:,./-]+$/.test(text)
    ? literal
    : `"${literal.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
};

// What a network server has no need of. Not here, on purpose: MemoryDenyWriteExecute, which switches
// the JavaScript compiler off without a word and makes everything tens of times slower.
const SANDBOX = `NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
PrivateDevices=yes
PrivateMounts=yes
PrivateTmp=yes
PrivateUsers=yes
RemoveIPC=yes
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
UMask=0077`;

// A user's own manager has no right to most of the above.
const USER_SANDBOX = `NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077`;

/** The unit file. */
export function systemdUnit(options: UnitOptions): string {
  const { scope, drain } = options;
  const system = scope === 'system';
  const command = [...options.program, 'serve', '--drain', String(drain)];
  if (options.config !== undefined) command.push('--config', options.config);
  const account =
    options.account === 'static' ? 'User=hopgate\nGroup=hopgate' : 'DynamicUser=yes\nUser=hopgate';
  const place = system
    ? `${account}
StateDirectory=hopgate
StateDirectoryMode=0700
ConfigurationDirectory=hopgate
Environment=HOPGATE_HOME=%S/hopgate
# Keys of vendors belong here, not into the configuration: only root needs to read it.
EnvironmentFile=-/etc/hopgate/hopgate.env`
    : `# Keys of vendors: what a shell exports is not seen by a service.
EnvironmentFile=-%E/hopgate/hopgate.env`;
  return `[Unit]
Description=hopgate, a gateway between coding agents or chat apps and any LLM vendor
Documentation=man:hopgate(1)
${system ? 'Wants=network-online.target\nAfter=network-online.target nss-lookup.target\n' : ''}StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart=${command.map(word).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=1
# 2: called wrongly. Starting again would not help.
RestartPreventExitStatus=2
WatchdogSec=30
TimeoutStartSec=60
# Longer than --drain, which wins over limits.drain of the configuration: open streams end by themselves.
TimeoutStopSec=${drain + 30}
KillMode=mixed
${place}

LimitNOFILE=65536
LimitCORE=0
TasksMax=1024
${system ? SANDBOX : USER_SANDBOX}

[Install]
WantedBy=${system ? 'multi-user.target' : 'default.target'}
`;
}
