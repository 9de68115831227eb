/** The section `auth`: the keys that clients must send, and what each of them may see. */

import { type Static, Type } from '@sinclair/typebox';
import type { Findings, Path } from '../file/problem.ts';
import { byDefault, choice, closed, credential, optional, text } from '../file/schema-types.ts';
import { Secret } from '../secret.ts';

export const auth = closed(
  {
    keys: byDefault(
      Type.Array(
        Type.Union([
          credential('A key that clients must send.'),
          closed(
            {
              name: text('A name for logs.'),
              key: credential('The key.'),
              sees: byDefault(
                choice(
                  ['own', 'all'],
                  'Which recorded exchanges the key shows in the browser: those made with it, or all.',
                ),
                'own',
              ),
              spaces: optional(
                Type.Array(text('A glob; upper and lower case differ.'), {
                  description: 'Memory spaces that the key may use.',
                }),
                'all of them',
              ),
            },
            'A key with a name.',
          ),
        ]),
        {
          description:
            'Keys that clients may use; none = every client that reaches the port is served.',
        },
      ),
      [],
    ),
  },
  'Who may use the gateway.',
);

export interface AuthKey {
  readonly name: string;
  readonly key: Secret;
  /** Which recorded exchanges it shows. */
  readonly sees: 'own' | 'all';
  /** Globs over memory spaces, case-sensitive; every space when left out. */
  readonly spaces?: readonly string[];
}

export interface AuthConfig {
  readonly keys: readonly AuthKey[];
}

export function resolveAuth({ keys }: Static<typeof auth>, findings: Findings): AuthConfig {
  const names = new Set<string>();
  return {
    keys: keys.map((entry, index): AuthKey => {
      const path: Path = ['auth', 'keys', index];
      if (typeof entry === 'string') {
        checkKey(entry, path, findings);
        return { name: `key ${index + 1}`, key: new Secret(entry), sees: 'own' };
      }
      const { name, key, sees, spaces } = entry;
      checkKey(key, [...path, 'key'], findings);
      if (names.has(name)) {
        findings.warnings.push({
          path: [...path, 'name'],
          message: `another key has the name ${JSON.stringify(name)}: they share what is stored, and each may do only what both may`,
        });
      }
      names.add(name);
      return { name, key: new Secret(key), sees, ...(spaces === undefined ? {} : { spaces }) };
    }),
  };
}

// What `printf %s "$UNSET" | sha256sum` gives.
const EMPTY_DIGEST = `sha256:${new Bun.CryptoHasher('sha256').update('').digest('hex')}`;

/** Characters. A shorter key can be guessed, and masks in logs cannot distinguish it from a word. */
const SHORT_KEY = 8;

/** Reports a key that every client or no client could send, and one that can be guessed. Never repeats it. */
function checkKey(written: string, path: Path, { problems, warnings }: Findings): void {
  const key = written.trim();
  if (key === '') problems.push({ path, message: 'is blank' });
  else if (key.toLowerCase() === EMPTY_DIGEST) {
    const message = 'is the digest of nothing: the key was empty when it was made';
    problems.push({ path, message });
  } else if (/^sha256:/i.test(key) && !/^sha256:[0-9a-f]{64}$/i.test(key)) {
    const message = 'begins with sha256: and must go on with the 64 hexadecimal digits of a digest';
    problems.push({ path, message });
  }
  if (written.length < SHORT_KEY) {
    warnings.push({
      path,
      message: `is short: a key of fewer than ${SHORT_KEY} characters can be guessed, and is not masked in logs`,
    });
  }
}
