/** Several processes: however the first one ends, no worker survives it, and open streams are finished. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OwnBank } from '../../../src/limits/bank.ts';
import { ProcessLimits } from '../../../src/limits/process-limits.ts';
import { FirstProcess } from '../../../src/limits/worker-channel.ts';
import { startWorkers } from '../../../src/server/process/workers.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { type Gateway, startGateway, threeProviders } from '../../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../../support/fake-upstream/index.ts';
import { until } from '../../support/until.ts';

setDefaultTimeout(60_000);

const linux = process.platform === 'linux';
const STREAMS = 16;

let upstream: FakeUpstream;
let gateway: Gateway;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.stop());
afterEach(async () => {
  await gateway?.stop();
});

const children = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);

function isAlive(pid: number): boolean {
  try {
    // A process that has ended stays listed until its parent reads its exit code.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Opens streams; what becomes of each. */
async function open(delivery: object): Promise<{ texts: Promise<string[]> }> {
  upstream.answerWith(() => say('One word after the other.', { delivery }));
  const body = JSON.stringify({
    model: 'via-chat',
    stream: true,
    messages: [{ role: 'user', content: 'Words, please.' }],
  });
  const responses = await Promise.all(
    Array.from({ length: STREAMS }, () =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        keepalive: false,
      }),
    ),
  );
  return { texts: Promise.all(responses.map((one) => one.text().catch(() => 'reset'))) };
}

/** Starts two processes; the pid of the second one. */
async function started(): Promise<number> {
  gateway = await startGateway({ ...threeProviders(upstream), workers: 2 });
  return children(gateway.pid)[0]!;
}

const finished = (texts: readonly string[]) =>
  texts.filter((text) => text.trimEnd().endsWith('data: [DONE]')).length;

const events = (name: string) => gateway.logs().filter(({ event }) => event === name).length;

const SLOW = { piece: 2, paceMs: 40 };
const HANGS = { cut: { at: 2, by: 'hang' } };

describe.skipIf(!linux)(`several processes${linux ? '' : ' [SKIPPED: needs /proc]'}`, () => {
  test('when the first one is killed, the others finish open streams and end', async () => {
    const worker = await started();
    const { texts } = await open(SLOW);
    gateway.signal('SIGKILL');
    await gateway.exited;
    expect(finished(await texts)).toBeGreaterThan(0);
    await until(() => !isAlive(worker));
    await expect(fetch(`${gateway.url}/healthz`)).rejects.toThrow();
  });

  test('Ctrl-C reaches all of them and cuts no stream', async () => {
    const worker = await started();
    const { texts } = await open(SLOW);
    process.kill(worker, 'SIGINT');
    gateway.signal('SIGINT');
    expect(finished(await texts)).toBe(STREAMS);
    expect(await gateway.exited).toBe(0);
    expect(isAlive(worker)).toBe(false);
  });

  test('a second SIGTERM ends them all at once', async () => {
    const worker = await started();
    const { texts } = await open(HANGS);
    gateway.signal('SIGTERM');
    await until(() => events('server.draining') === 2);
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(130);
    await until(() => !isAlive(worker));
    expect(finished(await texts)).toBe(0);
  });

  test('one that dies is started again, but not after a stop', async () => {
    const worker = await started();
    process.kill(worker, 'SIGKILL');
    const next = await until(() => children(gateway.pid).find((pid) => pid !== worker && pid > 0));
    process.kill(next, 'SIGKILL');
    await until(() => events('worker.died') === 2);
    // Long enough for the pause before a new start to be over.
    const { texts } = await open({ piece: 1, paceMs: 80 });
    gateway.signal('SIGTERM');
    expect(finished(await texts)).toBe(STREAMS);
    expect(await gateway.exited).toBe(0);
    expect(events('server.draining')).toBe(1);
  });
});

const noLimits = () => {
  const bank = new OwnBank();
  return new FirstProcess(new ProcessLimits({ bank }), bank).worker();
};

describe('a worker', () => {
  test('that cannot be started is started later, bound to the address of the first process', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hopgate-workers-'));
    const program = join(folder, 'program');
    const lines: string[] = [];
    const log = createLog({ write: (line) => lines.push(line) });
    const workers = startWorkers({
      count: 1,
      command: [program, 'serve'],
      variables: { PATH: process.env.PATH },
      host: '127.0.0.1',
      port: 5520,
      log,
      metrics: async () => '',
      limits: noLimits,
    });
    try {
      await workers.ready;
      expect(lines.join('')).toContain('"event":"worker.died"');
      expect(lines.join('')).toContain('ENOENT');
      await Bun.write(program, `#!/bin/sh\necho "$@" > ${folder}/arguments\nsleep 60`);
      chmodSync(program, 0o755);
      const told = await until(() => existsSync(join(folder, 'arguments')));
      expect(told).toBe(true);
      await until(() => readFileSync(join(folder, 'arguments'), 'utf8').endsWith('\n'));
      expect(readFileSync(join(folder, 'arguments'), 'utf8')).toBe(
        'serve --host 127.0.0.1 --port 5520\n',
      );
    } finally {
      workers.signal('SIGTERM');
      await workers.exited;
      rmSync(folder, { recursive: true });
    }
  });

  test('that never starts is tried at growing intervals', async () => {
    const lines: string[] = [];
    const workers = startWorkers({
      count: 1,
      command: ['false'],
      variables: { PATH: process.env.PATH },
      host: '127.0.0.1',
      port: 5520,
      log: createLog({ write: (line) => lines.push(line) }),
      metrics: async () => '',
      limits: noLimits,
    });
    const times = () =>
      lines.map((line) => Date.parse((JSON.parse(line) as { time: string }).time));
    await until(() => lines.length === 3);
    workers.signal('SIGTERM');
    const [first, second, third] = times();
    expect(third! - second!).toBeGreaterThan((second! - first!) * 1.2);
  });
});
