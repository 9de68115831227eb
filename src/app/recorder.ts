/** The recorder of a configuration: modes, limits, and every secret that must never reach a file. */

import type { Config } from '../config/config.ts';
import { secretsIn } from '../config/secret.ts';
import { Recorder, type RecorderSettings } from '../samples/record/recorder.ts';
import type { Retention } from '../samples/store/retention.ts';
import { event, type Log } from '../telemetry/log.ts';

/**
 * @param onPurged called with ids of samples that were removed because of a limit
 * @param recent the last exchanges that are not recorded stay in memory. With several workers they never do:
 *   the page reaches any one of them, and a memory space that is erased in one would stay in the others.
 */
export function recorderFor(
  config: Config,
  log: Log,
  recent: boolean,
  onPurged: (ids: readonly string[]) => void,
): Recorder {
  return new Recorder({
    root: config.samples.dir,
    ...recorderSettings(config),
    ...(recent && config.workers === 1 && { recent: {} }),
    onPurged,
    warn: (message) => event(log, 'samples.problem', { message }, 'warn'),
  });
}

/** The limits of all samples. */
export function retentionOf({ samples }: Config): Retention {
  const { keepDays, keepFailedDays, maxBytes, maxCount } = samples;
  return { keepDays, keepFailedDays, maxBytes, maxCount };
}

/** What a configuration that was loaded again may change. */
export function recorderSettings(config: Config): RecorderSettings {
  const { mode, redact } = config.samples;
  const own = config.routes.filter(({ samples }) => samples !== undefined);
  return {
    mode,
    redact,
    routes: Object.fromEntries(own.map(({ name, samples }) => [name, samples!])),
    secrets: secretsIn(config),
    retention: retentionOf(config),
  };
}
