/** Makes the key pair of a release (`keys DIR`), and signs a file of models with it (`sign FILE --key PEM`). */

import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { rawPublicKey } from '../src/config/models/models-file.ts';

/** The text with the line that signs it. */
export function signedText(text: string, key: KeyObject): string {
  const whole = text.endsWith('\n') ? text : `${text}\n`;
  const signature = sign(null, Buffer.from(whole), key).toString('base64');
  return `${whole}${JSON.stringify({ signature })}\n`;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { key: { type: 'string' }, out: { type: 'string' } },
    allowPositionals: true,
  });
  const [action, path] = positionals;
  if (action === 'keys' && path !== undefined) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const file = join(path, 'models-key.pem');
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(file, pem, { mode: 0o600, flag: 'wx' });
    console.log(`${file} is the private key: keep it where releases are made, and nowhere else.`);
    console.log(`MODELS_KEY of src/config/models/models-file.ts: ${rawPublicKey(publicKey)}`);
  } else if (action === 'sign' && path !== undefined && values.key !== undefined) {
    const key = createPrivateKey(readFileSync(values.key));
    writeFileSync(values.out ?? path, signedText(readFileSync(path, 'utf8'), key));
  } else {
    throw new Error(
      'usage: bun scripts/sign-models.ts keys DIR | sign FILE --key PEM [--out FILE]',
    );
  }
}
