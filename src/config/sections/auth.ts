import { sha256Hex } from '../../lib/text/sha256.ts';
import type { Environment } from '../environment.ts';
import type { Findings, Path } from '../file/problem.ts';
import {
  choice,
  closed,
  credential,
  either,
  list,
  type ProgramForm,
  text,
} from '../file/schema.ts';
import { Secret } from '../secret.ts';
import type { RouteNames } from './keys/budgets.ts';
import { type JwtConfig, jwt, resolveJwt } from './keys/jwt.ts';
import { type KeySettings, keySettings, resolveKeySettings } from './keys/settings.ts';

const key = closed('A key with a name.', {
  name: text('A name for logs.'),
  key: credential('The key.'),
  sees: choice(
    ['own', 'all'],
    'Which recorded exchanges the key shows in the browser: those made with it, or all.',
  ).byDefault('own'),
  ...keySettings,
});

export const auth = closed('Who may use the gateway.', {
  keys: list(
    either([credential('A key that clients must send.'), key]),
    'Keys that clients may use; none = every client that reaches the port is served.',
  ).byDefault([]),
  admin_keys: list(
    credential('A key that only the admin API takes.'),
    'Keys for the admin API (/admin/v1), never for model requests; none = it is off. With one, clients need a key: one of auth.keys, or one made at run time.',
  ).byDefault([]),
  jwt: jwt.optional('no tokens of people'),
  metrics: choice(
    ['operators', 'keys', 'open'],
    'Who reads /metrics, /health/targets and /health/engines where keys are needed: admin keys and keys that see all, every key, or everybody who reaches the port.',
  ).byDefault('operators'),
});

type Own = ProgramForm<typeof auth>;

export interface AuthKey
  extends KeySettings,
    Pick<ProgramForm<typeof key>, 'name' | 'key' | 'sees'> {}

export interface AuthConfig extends Omit<Own, 'keys' | 'jwt' | 'metrics'> {
  readonly keys: readonly AuthKey[];
  readonly jwt?: JwtConfig;
  /** Who reads metrics and health beside operators. */
  readonly metrics?: 'keys' | 'open';
}

/** No key is needed. */
export const NO_AUTH: AuthConfig = { keys: [], adminKeys: [] };

/** Does a client need a key, or a token? */
export const needsKey = ({ keys, adminKeys, jwt }: AuthConfig): boolean =>
  keys.length > 0 || adminKeys.length > 0 || jwt !== undefined;

const NO_SETTINGS: KeySettings = { labels: {}, limits: {}, budgets: [] };

export function resolveAuth(
  { keys, adminKeys, jwt, metrics }: Own,
  environment: Environment,
  routes: RouteNames,
  findings: Findings,
): AuthConfig {
  const names = new Set<string>();
  const digests = keys.map((entry) => digestOf(keyOf(entry)));
  /** The first entry of each key, which is the one that counts. */
  const firsts = new Map(digests.map((digest, index) => [digest, index] as const).toReversed());
  return {
    keys: keys.map((entry, index): AuthKey => {
      const path: Path = ['auth', 'keys', index];
      const key = keyOf(entry);
      const at = entry instanceof Secret ? path : [...path, 'key'];
      checkKey(key, at, findings);
      const first = firsts.get(digests[index]!)!;
      if (first < index) {
        const message = `is also auth.keys[${first}]: who sends it is that one, and this entry counts for nothing`;
        findings.warnings.push({ path: at, message });
      }
      if (entry instanceof Secret) {
        return { ...NO_SETTINGS, name: `key ${index + 1}`, key, sees: 'own' };
      }
      const { name, sees } = entry;
      checkName(name, [...path, 'name'], names, findings);
      const settings = resolveKeySettings(entry, { id: name, name, path }, routes, findings);
      return { ...settings, name, key, sees };
    }),
    adminKeys: adminKeys.map((key, index) => {
      const path: Path = ['auth', 'admin_keys', index];
      checkKey(key, path, findings);
      if (firsts.has(digestOf(key))) {
        const message = 'is also one of auth.keys: an admin key is for the admin API alone';
        findings.problems.push({ path, message });
      }
      return key;
    }),
    ...(jwt !== undefined && { jwt: resolveJwt(jwt, environment, routes, findings) }),
    ...(metrics !== 'operators' && { metrics }),
  };
}

const keyOf = (entry: Own['keys'][number]): Secret => (entry instanceof Secret ? entry : entry.key);

/** The same for a key and for its `sha256:` form. */
const digestOf = (secret: Secret): string => {
  const key = secret.reveal();
  return /^sha256:/i.test(key) ? key.slice('sha256:'.length).toLowerCase() : sha256Hex(key);
};

/** What is stored belongs to a name: those of keys made at run time and of people are not free. */
function checkName(name: string, path: Path, names: Set<string>, findings: Findings): void {
  if (/^(?:hk_|jwt:)/.test(name)) {
    const message = 'must not begin with hk_ or jwt: those are ids of other keys and of people';
    findings.problems.push({ path, message });
  }
  if (names.has(name)) {
    findings.warnings.push({
      path,
      message: `another key has the name ${JSON.stringify(name)}: they share what is stored, and each may do only what both may`,
    });
  }
  names.add(name);
}

// What `printf %s "$UNSET" | sha256sum` gives.
const EMPTY_DIGEST = `sha256:${sha256Hex('')}`;

/** Characters. A shorter key can be guessed, and masks in logs cannot distinguish it from a word. */
const SHORT_KEY = 8;

/** Reports a key that every client or no client could send, and one that can be guessed. Never repeats it. */
function checkKey(secret: Secret, path: Path, { problems, warnings }: Findings): void {
  const written = secret.reveal();
  const key = written.trim();
  if (key === '') problems.push({ path, message: 'is blank' });
  else if (key.toLowerCase() === EMPTY_DIGEST) {
    const message = 'is the digest of nothing: the key was empty when it was made';
    problems.push({ path, message });
  } else if (/^sha256:/i.test(key) && !/^sha256:[0-9a-f]{64}$/i.test(key)) {
    const message = 'begins with sha256: and must go on with the 64 hexadecimal digits of a digest';
    problems.push({ path, message });
  }
  if (/^bearer /i.test(key)) {
    const message = 'begins with "Bearer", which clients send before a key';
    warnings.push({ path, message });
  }
  if (written.length < SHORT_KEY) {
    warnings.push({
      path,
      message: `is short: a key of fewer than ${SHORT_KEY} characters can be guessed, and is not masked in logs`,
    });
  }
}
