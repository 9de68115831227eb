/** Times as OpenTelemetry has them: seconds and nanoseconds. */

import type { HrTime } from '@opentelemetry/api';

/** Of milliseconds, to a microsecond: more digits than a clock in milliseconds since 1970 has. */
export function hrTime(ms: number): HrTime {
  const micros = Math.round(ms * 1000);
  const seconds = Math.floor(micros / 1e6);
  return [seconds, (micros - seconds * 1e6) * 1000];
}
