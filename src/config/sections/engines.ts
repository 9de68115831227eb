import type { Environment } from '../environment.ts';
import { choice, closed, list, type ProgramForm, string } from '../file/schema.ts';
import { Secret } from '../secret.ts';

const address = <T>(parse: (text: string, environment: Environment) => T, description: string) =>
  string(description, { minLength: 1 })
    .reads((text, { path, environment, findings }) => {
      try {
        return parse(text, environment);
      } catch (thrown) {
        // Only messages of this file: that of another parser could quote a password.
        const message = thrown instanceof AddressProblem ? thrown.message : 'is no URL';
        findings.problems.push({ path, message });
        return undefined;
      }
    })
    .optional('none');

export const engines = closed('Engines that several gateways share; each is optional.', {
  cache: address(
    cacheAddress,
    'Valkey or Redis, for rates, state of turns and health of vendors: `redis://user:password@host:6379/0`, `rediss://…` for TLS, `redis+sentinel://host1:26379,host2:26379/primary-name/0`, `redis+cluster://host1:6379,host2:6379`. `?ca_file=PATH` trusts your own certificate authority, `?sentinel_password=…` is that of the sentinels.',
  ),
  database: address(
    databaseAddress,
    'Postgres, for keys, money, stored responses, memory, and the list of recorded exchanges: `postgres://user:password@host:5432/database`. The usual parameters apply, e.g. `?sslmode=verify-full&sslrootcert=PATH`.',
  ),
  objects: address(
    objectsAddress,
    'A store with the S3 API, for bodies of recorded exchanges; it also needs `database`: `s3://bucket/prefix?region=eu-central-1`, with `&endpoint=https://host` for your own store. Its key is in `s3://KEY:SECRET@bucket/…` or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
  ),
  seal: list(
    string(undefined, {
      pattern: '^[^\\u0000\\r\\n]{32,}$',
      'x-mismatch': 'must have at least 32 characters: `openssl rand -hex 32` makes one',
    }).secret(),
    'Secrets with which texts are encrypted before they are stored in an engine. The first one encrypts, all of them decrypt.',
    { maxItems: 8 },
  ).byDefault([]),
  on_error: choice(
    ['local', 'open', 'closed'],
    'Rates and concurrent requests while the cache is away: local = each replica applies its share, open = no limit, closed = keys with such limits are refused.',
  ).byDefault('local'),
});

export interface CacheAddress {
  readonly form: 'single' | 'sentinel' | 'cluster';
  /** At least one. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** With sentinels: the name of the primary. */
  readonly master?: string;
  readonly username?: string;
  readonly password?: Secret;
  /** Where the sentinels want one of their own. */
  readonly sentinelPassword?: Secret;
  readonly db: number;
  readonly tls: boolean;
  readonly caFile?: string;
}

export interface DatabaseAddress {
  /** Whole, with its password. */
  readonly url: Secret;
  /** For masks. */
  readonly password?: Secret;
}

export interface ObjectsAddress {
  readonly bucket: string;
  /** `''`, or ends with a slash. */
  readonly prefix: string;
  /** Without a slash at its end. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  readonly sessionToken?: Secret;
}

export type EnginesConfig = ProgramForm<typeof engines>;

class AddressProblem extends Error {}

const CACHE_SCHEMES: Readonly<Record<string, Pick<CacheAddress, 'form' | 'tls'>>> = {
  redis: { form: 'single', tls: false },
  rediss: { form: 'single', tls: true },
  'redis+sentinel': { form: 'sentinel', tls: false },
  'rediss+sentinel': { form: 'sentinel', tls: true },
  'redis+cluster': { form: 'cluster', tls: false },
  'rediss+cluster': { form: 'cluster', tls: true },
};

/** A URL with several hosts is none that a URL parser takes: each host is parsed by itself. */
function cacheAddress(text: string): CacheAddress {
  const [scheme, rest] = cut(text, '://');
  const kind = Object.hasOwn(CACHE_SCHEMES, scheme) ? CACHE_SCHEMES[scheme]! : undefined;
  if (kind === undefined || rest === '') {
    throw new AddressProblem(
      `must begin with one of ${Object.keys(CACHE_SCHEMES).join('://, ')}://`,
    );
  }
  const { form, tls } = kind;
  const [beforeQuery, query] = cut(rest, '?');
  const [authority, path] = cut(beforeQuery, '/');
  const at = authority.lastIndexOf('@');
  const [username, password] = cut(authority.slice(0, Math.max(0, at)), ':').map(
    decodeURIComponent,
  );
  const hosts = authority.slice(at + 1).split(',');
  if (form === 'single' && hosts.length > 1) {
    throw new AddressProblem('names several hosts: use redis+sentinel:// or redis+cluster://');
  }
  const nodes = hosts.map((host) => {
    const url = new URL(`http://${host}`);
    if (url.hostname === '' || url.pathname !== '/')
      throw new AddressProblem('has a host that is none');
    const port = url.port === '' ? (form === 'sentinel' ? 26379 : 6379) : Number(url.port);
    return { host: url.hostname.replace(/^\[|\]$/g, ''), port };
  });
  const parts = path.split('/').filter((part) => part !== '');
  const master = form === 'sentinel' ? parts.shift() : undefined;
  if (form === 'sentinel' && master === undefined) {
    throw new AddressProblem('needs the name of the primary after the hosts: …:26379/NAME');
  }
  const db = Number(parts.shift() ?? 0);
  if (!Number.isInteger(db) || db < 0 || parts.length > 0 || (form === 'cluster' && db !== 0)) {
    throw new AddressProblem('has a path that is no number of a database');
  }
  const parameters = new URLSearchParams(query);
  const caFile = parameters.get('ca_file');
  const sentinelPassword = parameters.get('sentinel_password');
  return {
    form,
    nodes,
    db,
    tls,
    ...(master !== undefined && { master: decodeURIComponent(master) }),
    ...(username !== undefined && username !== '' && { username }),
    ...(password !== undefined && password !== '' && { password: new Secret(password) }),
    ...(sentinelPassword !== null && { sentinelPassword: new Secret(sentinelPassword) }),
    ...(caFile !== null && { caFile }),
  };
}

/** The text before and after the first mark; all of it and '' where there is none. */
function cut(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + mark.length)];
}

function databaseAddress(text: string): DatabaseAddress {
  if (!/^postgres(ql)?:\/\//.test(text)) throw new AddressProblem('must begin with postgres://');
  const { hostname, pathname, password } = new URL(text);
  if (hostname === '' || pathname.length < 2) {
    throw new AddressProblem('must name a host and a database: postgres://host:5432/database');
  }
  return {
    url: new Secret(text),
    ...(password !== '' && { password: new Secret(decodeURIComponent(password)) }),
  };
}

function objectsAddress(text: string, environment: Environment): ObjectsAddress {
  if (!text.startsWith('s3://')) throw new AddressProblem('must begin with s3://');
  const { hostname: bucket, pathname, searchParams, username, password } = new URL(text);
  if (bucket === '') throw new AddressProblem('must name a bucket: s3://bucket/prefix');
  const region = searchParams.get('region') ?? environment.variable('AWS_REGION') ?? 'us-east-1';
  const endpoint = searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`;
  if (!/^https?:\/\/[^/?#]/.test(endpoint)) {
    throw new AddressProblem('has an endpoint that begins neither with https:// nor with http://');
  }
  const fromUrl = username !== '';
  const id = fromUrl ? decodeURIComponent(username) : environment.variable('AWS_ACCESS_KEY_ID');
  const secret = fromUrl
    ? decodeURIComponent(password)
    : environment.variable('AWS_SECRET_ACCESS_KEY');
  if (id === undefined || secret === undefined || secret === '') {
    throw new AddressProblem('has no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  }
  const token = fromUrl ? undefined : environment.variable('AWS_SESSION_TOKEN');
  const prefix = decodeURIComponent(pathname).replace(/^\/|\/$/g, '');
  return {
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint: endpoint.replace(/\/$/, ''),
    region,
    accessKeyId: id,
    secretAccessKey: new Secret(secret),
    ...(token !== undefined && { sessionToken: new Secret(token) }),
  };
}
