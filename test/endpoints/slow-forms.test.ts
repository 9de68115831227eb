/** Forms that do not end: each client has a share of the bytes, an exchange at a time, and a time by which it is over. */

import { afterEach, describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { Connections } from '../../src/server/connections.ts';
import { formSource } from '../../src/server/form-source.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import { FORM_TYPE, file, formBytes } from './forms.ts';
import { startVendor } from './vendor.ts';

const open: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

const UNFINISHED = 1_000_000;
const PIECE = 64 * 1024;

async function gatewayWithKeys(more: object = {}): Promise<InProcess> {
  const vendor = startVendor(() => Response.json({ text: 'heard' }));
  open.push(vendor);
  const keys = [
    { name: 'slow', key: 'key-of-the-slow-one', ...more },
    { name: 'other', key: 'key-of-the-other' },
  ];
  const gateway = await startInProcess({
    providers: {
      v: { protocol: 'openai-chat', base_url: vendor.url, keys: ['sk-vendor'], models: ['*'] },
    },
    auth: { keys },
    limits: { unfinished_bytes: UNFINISHED },
  });
  open.push(gateway);
  return gateway;
}

interface Slow {
  readonly socket: Socket;
  said(): string;
}

/** A form of 32 MB whose head is sent. */
async function begin(gateway: InProcess, key: string): Promise<Slow> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  open.push({ stop: () => socket.destroy() });
  let said = '';
  socket.on('data', (data) => {
    said += data.toString('latin1');
  });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(
    `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: ${FORM_TYPE}\r\ncontent-length: 33000000\r\n\r\n`,
  );
  const start = formBytes([{ name: 'model', value: 'm' }, file('')], '').toString();
  socket.write(start.slice(0, start.lastIndexOf('\r\n--')));
  return { socket, said: () => said };
}

const whole = (gateway: InProcess, key: string) =>
  fetch(`${gateway.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { 'content-type': FORM_TYPE, authorization: `Bearer ${key}` },
    body: formBytes([{ name: 'model', value: 'm' }, file(Buffer.alloc(100_000, 'x'))]),
  });

describe('forms that do not end', () => {
  test('fill no more than the share of their key, and the form of another key is served', async () => {
    const gateway = await gatewayWithKeys();
    const all = await Promise.all(
      Array.from({ length: 20 }, () => begin(gateway, 'key-of-the-slow-one')),
    );
    for (let round = 0; round < 2; round++) {
      for (const { socket } of all) if (!socket.destroyed) socket.write(Buffer.alloc(PIECE, 'x'));
      await Bun.sleep(50);
    }
    const refused = () => all.filter(({ said }) => said().includes('too_many_uploads')).length;
    const most = Math.ceil((0.75 * UNFINISHED) / PIECE);
    await until(() => refused() >= all.length - most);
    expect(await (await whole(gateway, 'key-of-the-other')).json()).toEqual({ text: 'heard' });
    for (const { socket } of all) socket.destroy();
    // What they held is free again.
    await until(async () => (await whole(gateway, 'key-of-the-slow-one')).status === 200);
  });

  test('count as exchanges at a time from their first byte on', async () => {
    const gateway = await gatewayWithKeys({ limits: { concurrent: 1 } });
    const one = await begin(gateway, 'key-of-the-slow-one');
    await until(async () => (await whole(gateway, 'key-of-the-slow-one')).status === 429);
    expect((await whole(gateway, 'key-of-the-other')).status).toBe(200);
    one.socket.destroy();
    await until(async () => (await whole(gateway, 'key-of-the-slow-one')).status === 200);
  });

  test('are over after a time, however regularly something comes', async () => {
    const connections = new Connections({
      idleMs: 0,
      bodyIdleMs: 2,
      unfinishedBytes: 0,
      runningBytes: 0,
    });
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await Bun.sleep(1);
        controller.enqueue(new Uint8Array(10));
      },
    });
    const request = new Request('http://x/', { method: 'POST', body });
    const source = formSource(request, request.headers as never, 1e9, connections);
    const readAll = async () => {
      while ((await source.read()) !== undefined);
    };
    expect(await readAll().catch((thrown) => thrown)).toMatchObject({
      status: 408,
      code: 'upload_too_slow',
    });
  });
});
