/** Files of TLS towards vendors: what cannot be used is named by the check, and no request tries it twice. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { Abort } from '../../src/lib/loop/abort.ts';
import { remedyForError } from '../../src/upstream/classify.ts';
import { connectionError } from '../../src/upstream/connection-error.ts';
import { networkTo } from '../../src/upstream/pool.ts';
import { createWorld, type World } from '../cli/world.ts';

const CERTIFICATES = join(import.meta.dir, '../support/certificates');
const pem = (name: string) => readFileSync(join(CERTIFICATES, `${name}.pem`), 'utf8');
const encrypted = () =>
  createPrivateKey(pem('client.key'))
    .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
    .toString();
const der = () => Buffer.from(pem('client').replaceAll(/-----.*-----|\s/g, ''), 'base64');
const BROKEN = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
// One that ended in 2025, of an authority of its own.
const ENDED = { cert: pem('ended'), key: pem('ended.key') };
const [CA, CERT, KEY] = [pem('authority'), pem('client'), pem('client.key')];

let world: World;
let server: Server;
beforeEach(async () => {
  world = createWorld();
  server = createServer(
    {
      cert: pem('localhost'),
      key: pem('localhost.key'),
      ca: CA,
      requestCert: true,
      rejectUnauthorized: false,
    },
    (_, answer) => answer.end('{}'),
  );
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterEach(async () => {
  world.remove();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

interface Files {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
}

/** What the check says of the files, and how a request ends with them. */
async function used(files: Files) {
  const tls = Object.fromEntries(
    Object.entries(files).map(([name, text]) => {
      const path = join(world.home, name);
      writeFileSync(path, text);
      return [`${name}_file`, path];
    }),
  );
  const base_url = `https://localhost:${(server.address() as AddressInfo).port}/v1`;
  const p = { protocol: 'openai-chat', base_url, keys: ['k'], models: ['m'], tls };
  const text = JSON.stringify({ providers: { p } });
  const { code, err } = await world.run(['check', '-c', world.write('hopgate.json', text)]);
  expect(code).toBe(0);
  const loaded = parseConfig(text, 'test.yaml', environmentFrom({}, '/nowhere'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const send = networkTo(loaded.config.providers.p!, () => false);
  const request = { url: base_url, method: 'POST' as const, headers: new Headers() };
  const asked = send({ ...request, body: new Uint8Array(1), abort: new Abort() });
  const failed = await asked.then(
    ({ body }) => void body.cancel(),
    (thrown: unknown) => connectionError('p', thrown),
  );
  return { says: err.replaceAll(/\s+/g, ' '), failed };
}

test.each<[name: string, files: Files, words: string]>([
  [
    'a key of another certificate',
    { ca: CA, cert: CERT, key: pem('localhost.key') },
    'does not belong to the certificate',
  ],
  ['a key with a passphrase', { ca: CA, cert: CERT, key: encrypted() }, 'has a passphrase'],
  [
    'a certificate in binary form',
    { ca: CA, cert: der(), key: KEY },
    'holds no certificate in PEM form',
  ],
  [
    'certificate and key exchanged',
    { ca: CA, cert: KEY, key: CERT },
    'holds no certificate in PEM form',
  ],
  ['an empty certificate', { ca: CA, cert: '', key: KEY }, 'holds no certificate in PEM form'],
  ['an empty key', { ca: CA, cert: CERT, key: '' }, 'holds no private key in PEM form'],
  ['an authority that is no PEM', { ca: 'garbage' }, 'holds no certificate in PEM form'],
  ['an empty file of authorities', { ca: '' }, 'holds no certificate in PEM form'],
  ['a broken authority', { ca: BROKEN + CA }, 'holds a broken certificate'],
])(
  '%s: the check says what is wrong, and a request goes elsewhere at once',
  async (_, files, words) => {
    const { says, failed } = await used(files);
    expect(says).toContain(words);
    expect(failed?.message).toContain('a file of providers.p.tls cannot be used');
    expect([failed && remedyForError(failed), failed?.retryable]).toEqual(['elsewhere', false]);
  },
);

test.each<[name: string, files: Files, words: string]>([
  [
    'a certificate without its key',
    { ca: CA, cert: CERT },
    'tls.cert_file: is not sent without key_file',
  ],
  [
    'a key without its certificate',
    { ca: CA, key: KEY },
    'tls.key_file: is not used without cert_file',
  ],
  [
    'a certificate that has ended',
    { ca: CA, cert: ENDED.cert, key: ENDED.key },
    'ended on 2025-01-01',
  ],
  ['a broken authority behind others', { ca: CA + BROKEN }, 'holds a broken certificate'],
])('%s: the check warns, and the request is sent', async (_, files, words) => {
  const { says, failed } = await used(files);
  expect([says, failed]).toEqual([expect.stringContaining(words), undefined]);
});

const windows = (text: string) => `\uFEFF${text.replaceAll('\n', '\r\n')}`;
test.each<[name: string, files: Files]>([
  ['an authority', { ca: CA }],
  ['several, with words between them', { ca: `# one\n${pem('client')}\n# two\n${CA}` }],
  ['a client certificate', { ca: CA, cert: CERT, key: KEY }],
  ['certificate and key in one file', { ca: CA, cert: KEY + CERT, key: KEY + CERT }],
  [
    "Windows' line ends and byte order marks",
    { ca: windows(CA), cert: windows(CERT), key: windows(KEY) },
  ],
])('%s: nothing to say, and the vendor answers', async (_, files) => {
  expect(await used(files)).toEqual({ says: '', failed: undefined });
});
