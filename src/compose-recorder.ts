/** The recorder of a configuration: modes, limits, and every secret that must never reach a file. */

import type { Config } from './config/config.ts';
import { openRecorder, type Recorder, type RecorderSettings } from './features/recorder/index.ts';
import { event, type Log } from './telemetry/log.ts';

/** Opens the recorder. Never throws. */
export function recorderFor(config: Config, log: Log): Recorder {
  return openRecorder({
    root: config.samples.dir,
    ...recorderSettings(config),
    warn: (message) => event(log, 'samples.problem', { message }, 'warn'),
  });
}

/** What a configuration that was loaded again may change. */
export function recorderSettings(config: Config): RecorderSettings {
  const { mode, redact, keepDays, keepFailedDays, maxBytes, maxCount } = config.samples;
  const own = config.routes.filter(({ samples }) => samples !== undefined);
  return {
    mode,
    redact,
    routes: Object.fromEntries(own.map(({ name, samples }) => [name, samples!])),
    secrets: secretsOf(config),
    retention: { keepDays, keepFailedDays, maxBytes, maxCount },
  };
}

/** Everything that the configuration holds as a secret, whatever it looks like. */
function secretsOf(config: Config): readonly string[] {
  const found = new Set<string>();
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if (isSecret(value)) found.add(value.reveal());
    else for (const member of Object.values(value)) walk(member);
  };
  walk(config);
  return [...found].filter((secret) => !secret.startsWith('sha256:'));
}

const isSecret = (value: object): value is { reveal(): string } =>
  'reveal' in value && typeof value.reveal === 'function';
