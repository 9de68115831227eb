/** Tokens of people: what is accepted, what is refused and why, and how the issuer's keys are fetched. */

import { beforeAll, describe, expect, test } from 'bun:test';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import type { GatewayError } from '../../src/conversation/errors.ts';
import { JwtTokens } from '../../src/keys/jwt-tokens.ts';
import type { Principal } from '../../src/keys/principal.ts';
import { configWith } from '../support/access.ts';

const ISSUER = 'https://id.example';
type Key = Awaited<ReturnType<typeof generateKeyPair>>;
let first: Key;
let second: Key;
let publicKeys: Record<'first' | 'second', JWK>;

beforeAll(async () => {
  first = await generateKeyPair('ES256', { extractable: true });
  second = await generateKeyPair('ES256', { extractable: true });
  publicKeys = {
    first: { ...(await exportJWK(first.publicKey)), kid: 'first', alg: 'ES256' },
    second: { ...(await exportJWK(second.publicKey)), kid: 'second', alg: 'ES256' },
  };
});

const NOW = Date.UTC(2030, 0, 1);

interface TokenParts {
  readonly claims?: Record<string, unknown>;
  readonly issuer?: string;
  readonly audience?: string;
  /** Seconds from NOW. */
  readonly expires?: number;
  readonly kid?: 'first' | 'second';
}

const token = ({
  claims = {},
  issuer = ISSUER,
  audience = 'hopgate',
  expires = 3600,
  kid = 'first',
}: TokenParts = {}) =>
  new SignJWT({ sub: 'ann', ...claims })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setIssuer(issuer)
    .setAudience(audience)
    .setExpirationTime(NOW / 1000 + expires)
    .sign((kid === 'first' ? first : second).privateKey);

function setUp(jwt: Record<string, unknown> = {}, more: Record<string, unknown> = {}) {
  const state = {
    keys: [publicKeys.first] as JWK[],
    failing: false,
    fetches: 0,
    failures: [] as string[],
    clock: 0,
  };
  const tokens = new JwtTokens({
    now: () => state.clock,
    onFailure: (message) => state.failures.push(message),
    fetch: async () => {
      state.fetches++;
      if (state.failing) throw new Error('no route to the issuer');
      return Response.json({ keys: state.keys });
    },
  });
  const config = configWith({
    auth: {
      jwt: { issuer: ISSUER, audience: 'hopgate', jwks: `${ISSUER}/jwks.json`, ...jwt },
    },
    ...more,
  });
  const configure = () => tokens.configure(config.auth.jwt, config.budgets, new Set());
  configure();
  const find = async (text: string, now = NOW): Promise<Principal> => tokens.find(text, now);
  return { state, tokens, find, configure };
}

const refusal = (work: Promise<unknown>): Promise<GatewayError> =>
  work.then(
    () => {
      throw new Error('nothing was refused');
    },
    (thrown) => thrown as GatewayError,
  );

describe('a person', () => {
  test('has the labels, limits and budgets of the configuration, and what claims say', async () => {
    const { find } = setUp(
      {
        claims: {
          name: 'email',
          labels: { team: '/org/team', site: 'https://id.example/site', groups: 'groups' },
          models: 'models',
        },
        labels: { kind: 'person' },
        models: ['glm/*', 'claude-*'],
        limits: { requests_per_minute: 9 },
        budgets: [{ usd: 1, per: 'day' }],
      },
      { budgets: [{ name: 'web', keys: { team: 'web' }, usd: 5, per: 'month' }] },
    );
    const claims = {
      email: 'ann@example.org',
      org: { team: 'web' },
      'https://id.example/site': 7,
      groups: ['a', 'b'],
      models: 'claude-* gpt-*',
    };
    const person = await find(await token({ claims }));
    expect(person).toMatchObject({
      id: 'jwt:ann',
      name: 'ann@example.org',
      sees: 'own',
      labels: { kind: 'person', team: 'web', site: '7' },
      limits: { requestsPerMinute: 9 },
    });
    expect(person.labels.groups).toBeUndefined();
    expect(person.budgets.map(({ id }) => id)).toEqual(['key:jwt%3Aann/per day', 'budget:web']);
    expect(
      ['claude-x', 'gpt-6'].map((asked) =>
        person.policy.allowsTarget(asked, { provider: 'p', model: asked }),
      ),
    ).toEqual([true, false]);
  });

  test('whose claim of models is missing may use none', async () => {
    const { find } = setUp({ claims: { models: 'models' } });
    const person = await find(await token());
    expect(person.policy.allowsModel('anything')).toBe(false);
  });

  test('is verified once, and again after a reload', async () => {
    const { find, tokens, configure } = setUp();
    const text = await token();
    const person = await find(text);
    expect(tokens.find(text, NOW)).toBe(person);
    configure();
    expect(tokens.find(text, NOW)).toBeInstanceOf(Promise);
  });

  test('is refused from the end of the token on, also where it was seen before', async () => {
    const { find } = setUp({ clock_skew: 10 });
    const text = await token({ expires: 60 });
    expect((await find(text, NOW + 69_000)).id).toBe('jwt:ann');
    expect((await refusal(find(text, NOW + 71_000))).code).toBe('token_expired');
  });
});

describe('a token is refused', () => {
  test.each<[string, TokenParts]>([
    ['of another issuer', { issuer: 'https://other.example' }],
    ['for another audience', { audience: 'other' }],
    ['without a subject', { claims: { sub: undefined } }],
    ['with an empty subject', { claims: { sub: '' } }],
    ['with a subject that is no name', { claims: { sub: 'a\nb' } }],
    ['that is over', { expires: -3600 }],
    ['that is not valid yet', { claims: { nbf: NOW / 1000 + 3600 } }],
    ['signed by a key that the issuer does not have', { kid: 'second' }],
  ])('%s', async (_, parts) => {
    const error = await refusal(setUp().find(await token(parts)));
    expect([error.status, error.kind]).toEqual([401, 'authentication']);
  });

  test('with a changed claim, without a signature, or signed with the public key as a secret', async () => {
    const { find } = setUp();
    const [head, , signature] = (await token()).split('.');
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = { iss: ISSUER, aud: 'hopgate', sub: 'root', exp: NOW / 1000 + 3600 };
    const secret = new TextEncoder().encode(JSON.stringify(publicKeys.first));
    const symmetric = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'first' })
      .sign(secret);
    const forged = [
      `${head}.${encode(claims)}.${signature}`,
      `${encode({ alg: 'none' })}.${encode(claims)}.${signature}`,
      symmetric,
    ];
    for (const text of forged) expect((await refusal(find(text))).status).toBe(401);
  });
});

describe('the keys of the issuer', () => {
  test('are fetched once for many tokens', async () => {
    const { find, state } = setUp();
    for (let n = 0; n < 20; n++) await find(await token({ claims: { sub: `p${n}` } }));
    expect(state.fetches).toBe(1);
  });

  test('are fetched again for a new key, and not for each unknown one', async () => {
    const { find, state } = setUp();
    await find(await token());
    state.keys = [publicKeys.first, publicKeys.second];
    const text = await token({ kid: 'second' });
    expect((await refusal(find(text))).status).toBe(401);
    state.clock += 31_000;
    expect((await find(text)).id).toBe('jwt:ann');
    state.keys = [publicKeys.first];
    for (let n = 0; n < 20; n++)
      await find(await token({ kid: 'second', claims: { sub: `p${n}` } }));
    expect(state.fetches).toBe(2);
  });

  test('are used on while the issuer is away, and refused after a day', async () => {
    const { find, state } = setUp();
    await find(await token());
    state.failing = true;
    state.clock += 3_600_000;
    expect((await find(await token({ claims: { sub: 'bob' } }))).id).toBe('jwt:bob');
    await Bun.sleep(1);
    expect(state.failures).toEqual(['no route to the issuer']);
    state.clock += 24 * 3_600_000;
    const error = await refusal(find(await token({ claims: { sub: 'cy' } })));
    expect([error.status, error.code]).toEqual([503, 'jwks_unavailable']);
    state.failing = false;
    state.clock += 31_000;
    expect((await find(await token({ claims: { sub: 'cy' } }))).id).toBe('jwt:cy');
  });

  test('that are no key set are a failure, not an empty set', async () => {
    const { find, state } = setUp();
    state.keys = 'x' as unknown as JWK[];
    expect((await refusal(find(await token()))).status).toBe(503);
    expect(state.failures).toHaveLength(1);
  });
});
