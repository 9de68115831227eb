/** SIGUSR2 under a supervisor: a new process on the same port, no connection refused, open streams finished by the old one. */

import { afterEach, describe, expect, test } from 'bun:test';
import { type Gateway, startGateway } from './support/binary.ts';

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
// Nobody listens there: what counts is that there is a supervisor.
const SUPERVISED = { NOTIFY_SOCKET: '/nowhere/notify' };

async function heir(of: Gateway): Promise<number> {
  for (let i = 0; i < 200; i++) {
    const line = of.logs().find(({ event }) => event === 'server.succeeded');
    if (line !== undefined) {
      heirs.push(line.pid as number);
      return line.pid as number;
    }
    await Bun.sleep(25);
  }
  throw new Error(`nobody took over:\n${of.stderr()}`);
}

describe.skipIf(!linux)(
  `succession${linux ? '' : ' [SKIPPED: needs a shared port of Linux]'}`,
  () => {
    test('no request fails while the process is exchanged, and the new one goes on alone', async () => {
      gateway = await startGateway(CONFIG, { env: SUPERVISED });
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
      const askers = [ask(), ask(), ask(), ask()];
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
      for (let i = 0; i < 100 && (await fetch(`${url}/healthz`).catch(() => undefined)); i++) {
        await Bun.sleep(20);
      }
      expect(await fetch(`${url}/healthz`).catch(() => undefined)).toBeUndefined();
    }, 30_000);

    test('a successor that does not come up changes nothing', async () => {
      gateway = await startGateway(CONFIG, { env: SUPERVISED });
      await Bun.write(gateway.configPath, 'lisen: 1\n');
      gateway.signal('SIGUSR2');
      for (let i = 0; i < 200 && !gateway.stderr().includes('succession.failed'); i++) {
        await Bun.sleep(25);
      }
      expect(gateway.logs().map(({ event }) => event)).toContain('server.succession.failed');
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    }, 30_000);

    test('without a supervisor the signal is refused, and ends nothing', async () => {
      gateway = await startGateway(CONFIG);
      gateway.signal('SIGUSR2');
      await Bun.sleep(200);
      expect(gateway.logs().map(({ event }) => event)).toContain('server.succession.refused');
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    });
  },
);
