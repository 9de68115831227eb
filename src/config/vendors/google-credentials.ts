import { join } from 'node:path';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { type Environment, expandHome } from '../environment.ts';

/** A key of a service account: it signs its own requests for tokens. */
interface ServiceAccount {
  readonly type: 'service_account';
  readonly email: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
  readonly keyId: string | undefined;
}

/** What `gcloud auth application-default login` writes. */
interface AuthorizedUser {
  readonly type: 'authorized_user';
  readonly clientId: string;
  readonly clientSecret: string;
  readonly refreshToken: string;
}

/** Credentials that Google's library handles: identities of other clouds and impersonated accounts. */
interface LibraryCredentials {
  readonly type: (typeof LIBRARY_TYPES)[number];
  readonly json: JsonObject;
  /** The service account whose rights they get; undefined: their own. */
  readonly account: string | undefined;
}

const LIBRARY_TYPES = [
  'external_account',
  'external_account_authorized_user',
  'impersonated_service_account',
] as const;

/** Required members of each kind. */
const NEEDED: Readonly<Record<(typeof LIBRARY_TYPES)[number], readonly string[]>> = {
  external_account: ['audience', 'subject_token_type', 'token_url', 'credential_source'],
  external_account_authorized_user: ['refresh_token', 'client_id', 'client_secret', 'token_url'],
  impersonated_service_account: ['service_account_impersonation_url', 'source_credentials'],
};

export type GoogleCredentials = (ServiceAccount | AuthorizedUser | LibraryCredentials) & {
  /** Where tokens are issued. */
  readonly tokenUrl: string;
  /** Project of the account; for a user, the one that pays. */
  readonly project: string | undefined;
};

const TOKEN_URL = 'https://oauth2.googleapis.com/token';

/** The file's place as Google's own tools find it, and whether somebody named it. */
interface CredentialsFile {
  readonly file: string;
  readonly isNamed: boolean;
}

/**
 * The file that Google's own tools use: `GOOGLE_APPLICATION_CREDENTIALS`, else the one that
 * `gcloud auth application-default login` writes.
 */
export function googleCredentialsFile(
  written: string | undefined,
  environment: Environment,
): CredentialsFile {
  const { userHome, configHome } = environment;
  const named = written ?? environment.variable('GOOGLE_APPLICATION_CREDENTIALS');
  if (named !== undefined) return { file: expandHome(named, userHome), isNamed: true };
  const folder = environment.variable('CLOUDSDK_CONFIG') ?? join(configHome, 'gcloud');
  return { file: join(folder, 'application_default_credentials.json'), isNamed: false };
}

/** The credentials in a file's text, or why they cannot be used; the reason holds nothing of the text but its type. */
export function googleCredentials(text: string): GoogleCredentials | { readonly problem: string } {
  const value = tryParse(text);
  if (!isObject(value)) return { problem: 'is no JSON object' };
  const tokenUrl = string(value, 'token_uri') ?? TOKEN_URL;
  if (!URL.canParse(tokenUrl) || !/^https?:/.test(tokenUrl)) {
    return { problem: 'has a "token_uri" that is no URL' };
  }
  const missing = (name: string) => ({ problem: `has no "${name}"` });
  switch (value.type) {
    case 'service_account': {
      const email = string(value, 'client_email');
      const privateKey = string(value, 'private_key');
      if (email === undefined) return missing('client_email');
      if (privateKey === undefined) return missing('private_key');
      const keyId = string(value, 'private_key_id');
      const project = string(value, 'project_id');
      return { type: 'service_account', email, privateKey, keyId, tokenUrl, project };
    }
    case 'authorized_user': {
      const clientId = string(value, 'client_id');
      const clientSecret = string(value, 'client_secret');
      const refreshToken = string(value, 'refresh_token');
      if (clientId === undefined) return missing('client_id');
      if (clientSecret === undefined) return missing('client_secret');
      if (refreshToken === undefined) return missing('refresh_token');
      const project = string(value, 'quota_project_id');
      return { type: 'authorized_user', clientId, clientSecret, refreshToken, tokenUrl, project };
    }
    case 'external_account':
    case 'external_account_authorized_user':
    case 'impersonated_service_account': {
      const { type } = value;
      const absent = NEEDED[type].find((name) => value[name] === undefined);
      if (absent !== undefined) return missing(absent);
      const project = string(value, 'quota_project_id');
      const account = accountIn(value);
      return { type, json: value, account, tokenUrl, project };
    }
    default: {
      const type = string(value, 'type');
      const what = type === undefined ? 'has no "type"' : `is of type "${type.slice(0, 40)}"`;
      return {
        problem: `${what}: only ${['service_account', 'authorized_user', ...LIBRARY_TYPES].join(', ')} are supported`,
      };
    }
  }
}

/** The service account whose rights an identity gets; undefined: its own. */
export const accountIn = (json: JsonObject): string | undefined =>
  /serviceAccounts\/([^/:]+):generateAccessToken$/.exec(
    string(json, 'service_account_impersonation_url') ?? '',
  )?.[1];

function string(value: JsonObject, name: string): string | undefined {
  const member = value[name];
  return typeof member === 'string' && member !== '' ? member : undefined;
}
