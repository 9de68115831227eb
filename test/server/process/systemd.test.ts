/** What the compiled server sends to systemd: ready, reloading, alive, stopping. */

import { dlopen, FFIType, ptr } from 'bun:ffi';
import { afterEach, describe, expect, jest, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  datagramSender,
  type SystemdNotifier,
  systemdNotifier,
} from '../../../src/server/process/systemd.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { type Gateway, startGateway } from '../../support/binary.ts';
import { until } from '../../support/until.ts';

const linux = process.platform === 'linux';
const why = linux ? '' : ' [SKIPPED: systemd is of Linux]';

interface Listener {
  readonly path: string;
  /** Messages that have come since the last call. */
  read(): string[];
  /** The first message that has this in it; it and what came before it are taken. */
  until(part: string, patience?: number): Promise<string>;
  close(): void;
}

/** A datagram socket as systemd has one. */
function listen(path: string): Listener {
  const { symbols: c } = dlopen('libc.so.6', {
    socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    bind: { args: [FFIType.i32, FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
    recv: { args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i64 },
    close: { args: [FFIType.i32], returns: FFIType.i32 },
  });
  const name = new TextEncoder().encode(path.startsWith('@') ? `\0${path.slice(1)}` : path);
  const address = new Uint8Array(2 + name.length + (path.startsWith('@') ? 0 : 1));
  address[0] = 1;
  address.set(name, 2);
  const fd = c.socket(1, 2, 0);
  if (c.bind(fd, ptr(address), address.length) !== 0) throw new Error(`cannot bind ${path}`);
  const buffer = new Uint8Array(4096);
  const all: string[] = [];
  let waiting: string[] = [];
  const receive = () => {
    for (;;) {
      const length = Number(c.recv(fd, ptr(buffer), buffer.length, 0x40));
      if (length < 0) return;
      waiting.push(new TextDecoder().decode(buffer.subarray(0, length)));
      all.push(waiting.at(-1)!);
    }
  };
  return {
    path,
    read() {
      receive();
      const found = waiting;
      waiting = [];
      return found;
    },
    async until(part, patience = 5000) {
      const end = Date.now() + patience;
      for (;;) {
        receive();
        const at = waiting.findIndex((text) => text.includes(part));
        if (at >= 0) return waiting.splice(0, at + 1).at(-1)!;
        if (Date.now() > end) throw new Error(`no ${part} in ${JSON.stringify(all)}`);
        await Bun.sleep(10);
      }
    },
    close: () => c.close(fd),
  };
}

const opened: { close(): void }[] = [];
let gateway: Gateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  for (const one of opened.splice(0)) one.close();
});

function socket(): Listener {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-notify-'));
  const listener = listen(join(folder, 'notify'));
  opened.push(listener, { close: () => rmSync(folder, { recursive: true, force: true }) });
  return listener;
}

const CONFIG = { samples: { mode: 'off' } };

describe.skipIf(!linux)(`sd_notify${why}`, () => {
  test('ready comes when it answers, then reloading and ready again, then stopping', async () => {
    const systemd = socket();
    gateway = await startGateway(CONFIG, { env: { NOTIFY_SOCKET: systemd.path } });
    expect(await systemd.until('READY=1')).toBe(`READY=1\nSTATUS=listening on ${gateway.url}`);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    gateway.signal('SIGHUP');
    const reloading = await systemd.until('RELOADING=1');
    // The clock that systemd compares with counts from boot, not from the start of the process.
    const micros = Number(/^MONOTONIC_USEC=(\d+)$/m.exec(reloading)![1]);
    const uptime = Number((await Bun.file('/proc/uptime').text()).split(' ')[0]) * 1e6;
    expect(Math.abs(micros - uptime)).toBeLessThan(60e6);
    await systemd.until('READY=1');
    gateway.signal('SIGTERM');
    expect(await systemd.until('STOPPING=1')).toContain('STATUS=waiting for open streams');
    expect(await gateway.exited).toBe(0);
  }, 60_000);

  test('the watchdog is fed again and again, at most twice in its interval, and not while the event loop hangs', async () => {
    const systemd = socket();
    gateway = await startGateway(CONFIG, {
      env: { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '200000' },
    });
    await systemd.until('READY=1');
    const since = performance.now();
    for (let fed = 0; fed < 10; fed++) await systemd.until('WATCHDOG=1');
    // The first may come at once, and one that was late brings the next one nearer.
    expect(performance.now() - since).toBeGreaterThan(700);
    gateway.signal('SIGSTOP');
    await Bun.sleep(50);
    systemd.read();
    await Bun.sleep(500);
    expect(systemd.read()).toEqual([]);
    gateway.signal('SIGCONT');
    await systemd.until('WATCHDOG=1');
  });

  test('the watchdog is fed twice in its interval, while draining too, until another process is the main one', () => {
    const systemd = socket();
    const log = createLog({ level: 'silent', format: 'json' });
    const variables = { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '200000' };
    // The number of feeds within a second of the test's clock.
    const fed = () => {
      jest.advanceTimersByTime(1000);
      return systemd.read().filter((text) => text === 'WATCHDOG=1').length;
    };
    let notifier: SystemdNotifier | undefined;
    jest.useFakeTimers();
    try {
      notifier = systemdNotifier(variables, log);
      expect(fed()).toBe(0);
      notifier.ready('http://127.0.0.1:1');
      expect(fed()).toBe(10);
      notifier.stopping();
      expect(fed()).toBe(10);
      notifier.handOver(1);
      expect(fed()).toBe(0);
    } finally {
      notifier?.close();
      jest.useRealTimers();
    }
  });

  test("another process's watchdog is not fed", async () => {
    const systemd = socket();
    gateway = await startGateway(CONFIG, {
      env: { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '100000', WATCHDOG_PID: '1' },
    });
    await systemd.until('READY=1');
    await Bun.sleep(300);
    expect(systemd.read()).toEqual([]);
  });

  test('a socket that is gone costs a warning, not the server', async () => {
    gateway = await startGateway(CONFIG, { env: { NOTIFY_SOCKET: '/nowhere/notify' } });
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    await until(() => gateway!.logs().some(({ event }) => event === 'supervisor.unreachable'));
  });

  test('with several processes only the first speaks', async () => {
    const systemd = socket();
    gateway = await startGateway(
      { ...CONFIG, workers: 2 },
      { env: { NOTIFY_SOCKET: systemd.path } },
    );
    await systemd.until('READY=1');
    await Bun.sleep(200);
    expect(systemd.read().filter((text) => text.includes('READY'))).toEqual([]);
  });

  test('SIGUSR2 names the successor, which feeds the watchdog from then on', async () => {
    const systemd = socket();
    gateway = await startGateway(CONFIG, {
      env: { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '200000' },
    });
    await systemd.until('READY=1');
    gateway.signal('SIGUSR2');
    const pid = Number(/^MAINPID=(\d+)\nREADY=1$/.exec(await systemd.until('MAINPID='))![1]);
    opened.push({ close: () => process.kill(pid, 'SIGKILL') });
    expect(await gateway.exited).toBe(0);
    // The service goes on, so systemd must not read that it stops.
    expect(systemd.read().filter((text) => text.includes('STOPPING'))).toEqual([]);
    await systemd.until('WATCHDOG=1');
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  }, 30_000);

  test('a socket passed by systemd is not used, and a warning says so', async () => {
    gateway = await startGateway(CONFIG, { env: { LISTEN_FDS: '1' } });
    expect(gateway.logs().map(({ event }) => event)).toContain('socket.activation.ignored');
  });
});

describe.skipIf(!linux)(`datagrams${why}`, () => {
  test('reach a name in the abstract namespace', () => {
    const listener = listen(`@hopgate-test-${process.pid}`);
    opened.push(listener);
    expect(datagramSender(listener.path)!.send('grüße\nzwei')).toBe(true);
    expect(listener.read()).toEqual(['grüße\nzwei']);
  });

  test('without a socket, or with a full queue, fail at once', () => {
    expect(datagramSender('/nowhere/at/all')!.send('x')).toBe(false);
    expect(datagramSender(`/${'x'.repeat(300)}`)!.send('x')).toBe(false);
    const listener = socket();
    const sender = datagramSender(listener.path)!;
    const sent = Array.from({ length: 5000 }, () => sender.send('x'.repeat(100)));
    expect(sent).toContain(true);
    expect(sent).toContain(false);
  });

  test('are not tried with an address that is no path', () => {
    expect(datagramSender('vsock:2:1')).toBeUndefined();
  });
});
