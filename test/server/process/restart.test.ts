/** SIGUSR2 under systemd: a new process takes over the port, no connection is refused, and the old one finishes its streams. */

import { afterEach, describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { startSuccessor } from '../../../src/server/process/restart.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { type Gateway, startGateway } from '../../support/binary.ts';
import { until } from '../../support/until.ts';

const linux = process.platform === 'linux';
let gateway: Gateway | undefined;
const heirs: number[] = [];
afterEach(async () => {
  for (const pid of heirs.splice(0)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
  await gateway?.stop();
  gateway = undefined;
});

const CONFIG = { samples: { mode: 'off' } };
// No socket is there: only the presence of a supervisor matters.
const SUPERVISED = { NOTIFY_SOCKET: '/nowhere/notify' };

/** Sends requests one after the other on one connection; `told` when the last answer announced that it is the last. */
function askUntilClosed(port: number, path: string): Promise<'told' | 'cut'> {
  const { promise, resolve } = Promise.withResolvers<'told' | 'cut'>();
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  const request = `HEAD ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`;
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1');
    if (!answer.endsWith('\r\n\r\n')) return;
    if (/^connection: close\r$/im.test(answer)) resolve('told');
    else socket.write(request);
    answer = '';
  });
  socket.on('close', () => resolve('cut'));
  socket.on('error', () => resolve('cut'));
  return promise;
}

async function heir(of: Gateway): Promise<number> {
  for (let i = 0; i < 200; i++) {
    const line = of.logs().find(({ event }) => event === 'server.succeeded');
    if (line !== undefined) {
      heirs.push(line.pid as number);
      return line.pid as number;
    }
    await Bun.sleep(25);
  }
  throw new Error(`no process took over:\n${of.stderr()}`);
}

test('a successor that hangs is ended and told, so that the next one can start', async () => {
  const lines: string[] = [];
  const { succeeded } = startSuccessor({
    command: ['sh', '-c', 'trap "" TERM; while :; do sleep 1; done'],
    variables: process.env,
    port: 1,
    sockets: 1,
    log: createLog({ format: 'json', write: (line) => lines.push(line) }),
    startMs: 200,
    onReady: () => lines.push('ready'),
    onHandedOver: () => lines.push('handed over'),
  });
  expect(await succeeded).toBe(false);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('server.succession.failed');
  expect(lines[0]).toContain('did not start within 0.2 s');
});

describe.skipIf(!linux)(
  `succession${linux ? '' : ' [SKIPPED: needs a shared port of Linux]'}`,
  () => {
    test.each([1, 2])(
      'no request fails during the restart, and the new process goes on alone; processes: %i',
      async (workers) => {
        gateway = await startGateway({ ...CONFIG, workers }, { env: SUPERVISED });
        const { url } = gateway;
        const failures: string[] = [];
        let asked = 0;
        let stop = false;
        const ask = async () => {
          while (!stop) {
            try {
              const response = await fetch(`${url}/healthz`, { keepalive: false });
              await response.text();
              asked++;
            } catch (thrown) {
              failures.push(String(thrown));
            }
          }
        };
        const askers = Array.from({ length: 32 }, ask);
        await Bun.sleep(100);
        gateway.signal('SIGUSR2');
        const pid = await heir(gateway);
        expect(await gateway.exited).toBe(0);
        await Bun.sleep(200);
        stop = true;
        await Promise.all(askers);
        expect(failures).toEqual([]);
        expect(asked).toBeGreaterThan(50);
        process.kill(pid, 'SIGTERM');
        // With several processes one may still answer when another has ended.
        let refused = 0;
        for (let i = 0; i < 100 && refused < 5; i++) {
          const answer = await fetch(`${url}/healthz`).catch(() => undefined);
          refused = answer === undefined ? refused + 1 : 0;
          await Bun.sleep(20);
        }
        expect(refused).toBe(5);
      },
      30_000,
    );

    test.each([1, 2])(
      'a kept connection gets `connection: close` before it is closed; processes: %i',
      async (workers) => {
        gateway = await startGateway({ ...CONFIG, workers }, { env: SUPERVISED });
        const port = Number(new URL(gateway.url).port);
        const told: Promise<unknown>[] = [];
        for (let i = 0; i < 8; i++) told.push(askUntilClosed(port, i % 2 === 0 ? '/healthz' : '/'));
        await Bun.sleep(100);
        gateway.signal('SIGUSR2');
        await heir(gateway);
        expect(await Promise.all(told)).toEqual(Array(8).fill('told'));
        expect(await gateway.exited).toBe(0);
      },
      30_000,
    );

    test.each([1, 3])(
      'SIGTERM while a successor starts ends both processes; processes: %i',
      async (workers) => {
        for (const ms of [0, 10, 20, 40]) {
          gateway = await startGateway({ ...CONFIG, workers }, { env: SUPERVISED });
          const { url } = gateway;
          gateway.signal('SIGUSR2');
          await Bun.sleep(ms);
          gateway.signal('SIGTERM');
          expect(await gateway.exited).toBe(0);
          const done = gateway.logs().find(({ event }) => event === 'server.succeeded');
          await gateway.stop();
          if (done !== undefined) {
            // It had taken over already, and systemd knows its pid.
            process.kill(done.pid as number, 'SIGKILL');
            continue;
          }
          const isGone = () =>
            fetch(`${url}/healthz`, { keepalive: false }).then(
              () => false,
              () => true,
            );
          await until(isGone);
          // And none starts after that.
          await Bun.sleep(500);
          expect(await isGone()).toBe(true);
        }
      },
      60_000,
    );

    test('a successor that does not start changes nothing', async () => {
      gateway = await startGateway(CONFIG, { env: SUPERVISED });
      await Bun.write(gateway.configPath, 'lisen: 1\n');
      gateway.signal('SIGUSR2');
      await until(() => gateway!.stderr().includes('succession.failed'));
      expect(gateway.logs().map(({ event }) => event)).toContain('server.succession.failed');
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    }, 30_000);

    test('without systemd the signal is refused and ends nothing', async () => {
      gateway = await startGateway(CONFIG);
      gateway.signal('SIGUSR2');
      await until(() => gateway!.stderr().includes('succession.refused'));
      expect(gateway.logs().map(({ event }) => event)).toContain('server.succession.refused');
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    });
  },
);
