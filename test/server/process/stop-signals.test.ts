/** Signals that stop a process: Ctrl-C of npm and shells arrives twice, and only a later one is meant as the second. */

import { afterEach, expect, spyOn, test } from 'bun:test';
import { whenStopped } from '../../../src/server/process/run.ts';
import { createLog } from '../../../src/telemetry/log.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const before = SIGNALS.map((signal) => process.listeners(signal));
const exit = spyOn(process, 'exit').mockImplementation((() => {}) as never);
const now = spyOn(performance, 'now');
afterEach(() => {
  SIGNALS.forEach((signal, i) => {
    for (const one of process.listeners(signal)) {
      if (!before[i]!.includes(one)) process.off(signal, one);
    }
  });
  exit.mockRestore();
  now.mockRestore();
});

test('a second SIGINT within 100 ms is the first one again; a later one ends the process, as a second SIGTERM does', async () => {
  const events: unknown[] = [];
  const log = createLog({
    format: 'json',
    level: 'debug',
    write: (line) => events.push(JSON.parse(line).event),
  });
  const at = (ms: number, signal: (typeof SIGNALS)[number]) => {
    now.mockReturnValue(ms);
    process.emit(signal, signal);
  };
  let stops = 0;
  const stop = Promise.withResolvers<void>();
  const stopped = whenStopped(log, false, () => {
    stops++;
    return stop.promise;
  });
  at(1000, 'SIGINT');
  at(1003, 'SIGINT');
  at(1100, 'SIGINT');
  expect([stops, events]).toEqual([1, ['server.draining']]);
  expect(exit).not.toHaveBeenCalled();
  at(1050, 'SIGTERM');
  at(1101, 'SIGINT');
  expect(exit.mock.calls).toEqual([[130], [130]]);
  expect(stops).toBe(1);
  stop.resolve();
  await stopped;
});
