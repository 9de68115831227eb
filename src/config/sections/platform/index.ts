/** The keys of a provider that is reached through a cloud's platform: Google Vertex AI, Amazon Bedrock or Azure. */

import { existsSync, readFileSync } from 'node:fs';
import type { ProtocolName } from '../../../conversation/protocol-names.ts';
import { readNamedFile } from '../../../lib/text/named-file.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { withoutTrailing } from '../../../lib/text/trim-end.ts';
import { PLATFORM_NAMES, type PlatformName } from '../../../vendors/vendor.ts';
import type { Environment } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import { choice, closed, type ProgramForm, programName, string, text } from '../../file/schema.ts';
import {
  type GoogleCredentials,
  googleCredentials,
  googleCredentialsFile,
} from '../../vendors/google-credentials.ts';
import { type AzureConfig, azureBaseUrl, azureKeys, resolveAzure } from './azure.ts';

/** These names become parts of a host or of a path. */
const part = (description: string, pattern: string, mismatch: string) =>
  string(description, { pattern, 'x-mismatch': mismatch });
const place = (description: string) =>
  part(description, '^[a-z0-9-]{1,40}$', 'must hold only a–z, 0–9 and -');

export const platformKeys = {
  platform: choice(
    PLATFORM_NAMES,
    'The cloud that serves the models: vertex (Google Vertex AI; anthropic-messages, google-gemini), bedrock (Amazon; anthropic-messages) or azure (openai-responses, openai-chat).',
  ).optional("the preset's, else the vendor itself"),
  project: part(
    'vertex: the Google Cloud project.',
    '^[a-z0-9][a-z0-9.:-]{0,99}$',
    'must hold only a–z, 0–9, -, . and :',
  ).optional(
    'GOOGLE_CLOUD_PROJECT, ANTHROPIC_VERTEX_PROJECT_ID, or the project of the credentials file',
  ),
  location: place('vertex: global, a region like europe-west1, or us or eu.').optional(
    'GOOGLE_CLOUD_LOCATION or CLOUD_ML_REGION',
  ),
  credentials_file: text(
    'vertex: a JSON file with the key of a service account, the login of a user, or the configuration of a federated identity.',
  ).optional(
    "GOOGLE_APPLICATION_CREDENTIALS, else the file that gcloud auth application-default login writes, else Google's metadata server",
  ),
  region: place('bedrock: the AWS region.').optional('AWS_REGION or AWS_DEFAULT_REGION'),
  aws_profile: text('bedrock: the profile in the AWS configuration files.').optional(
    'AWS_PROFILE, else the usual order of the AWS tools',
  ),
  ...azureKeys,
};

const platform = closed('How a cloud is reached.', platformKeys);
type OwnPlatform = ProgramForm<typeof platform> & { readonly baseUrl?: string | undefined };

export interface VertexConfig {
  readonly name: 'vertex';
  readonly project: string;
  readonly location: string;
  readonly credentialsFile: string;
  /** The path is the default one: if the file does not exist, Google's metadata server provides the tokens. */
  readonly metadata?: boolean;
}

export interface BedrockConfig {
  readonly name: 'bedrock';
  readonly region: string;
  /** Undefined: as AWS' own tools choose. */
  readonly awsProfile: string | undefined;
}

export type PlatformConfig = VertexConfig | BedrockConfig | AzureConfig;

const PROTOCOLS: Readonly<Record<PlatformName, readonly ProtocolName[]>> = {
  vertex: ['anthropic-messages', 'google-gemini'],
  bedrock: ['anthropic-messages'],
  azure: ['openai-responses', 'openai-chat'],
};

const KEYS: Readonly<Record<PlatformName, readonly (keyof typeof platformKeys)[]>> = {
  vertex: ['project', 'location', 'credentials_file'],
  bedrock: ['region', 'aws_profile'],
  azure: ['resource', 'tenant_id', 'client_id', 'scope'],
};

/** The preset that knows the models and the quirks of a protocol at a platform. */
export const presetOfPlatform = (
  platform: PlatformName,
  protocol: ProtocolName | undefined,
): string => {
  if (platform !== 'vertex') return platform;
  return protocol === 'anthropic-messages' ? 'vertex-claude' : 'vertex-gemini';
};

/** The platform of a provider; undefined for one without, and (each time with a problem) where something is missing. */
export function resolvePlatform(
  own: OwnPlatform,
  name: PlatformName | undefined,
  protocol: ProtocolName | undefined,
  hasKeys: boolean,
  path: Path,
  environment: Environment,
  findings: Findings,
): PlatformConfig | undefined {
  for (const platform of PLATFORM_NAMES) {
    if (platform === name) continue;
    for (const key of KEYS[platform]) {
      if (own[programName(key, platformKeys[key]) as keyof OwnPlatform] === undefined) continue;
      const message = `is only for providers with platform: ${platform}`;
      findings.problems.push({ path: [...path, key], message });
    }
  }
  if (name === undefined) return undefined;
  if (protocol !== undefined && !PROTOCOLS[name].includes(protocol)) {
    const message = `${name} is only for providers that speak ${PROTOCOLS[name].join(' or ')}`;
    findings.problems.push({
      path: own.platform === undefined ? path : [...path, 'platform'],
      message,
    });
    return undefined;
  }
  const needed = (key: string, variables: readonly string[]): undefined => {
    const message = `needs the key "${key}" (or ${variables.join(' or ')} in the environment)`;
    findings.problems.push({ path, key: true, message });
  };
  const variable = (names: readonly string[]) =>
    names.map((one) => environment.variable(one)).find((value) => value !== undefined);
  if (name === 'azure') return resolveAzure(own, path, environment, findings);
  if (name === 'bedrock') {
    const region = own.region ?? variable(REGIONS) ?? needed('region', REGIONS);
    return region === undefined
      ? undefined
      : { name, region: checked(region, 'region', path, findings), awsProfile: own.awsProfile };
  }
  const { file, isNamed } = googleCredentialsFile(own.credentialsFile, environment);
  const metadata = !isNamed;
  const credentials =
    hasKeys || (metadata && isAtGoogle(file, environment))
      ? undefined
      : readable(file, own, path, findings);
  const location = own.location ?? variable(LOCATIONS) ?? needed('location', LOCATIONS);
  const project =
    own.project ?? variable(PROJECTS) ?? credentials?.project ?? needed('project', PROJECTS);
  if (location === undefined || project === undefined) return undefined;
  return {
    name,
    project: checked(project, 'project', path, findings),
    location: checked(location, 'location', path, findings),
    credentialsFile: file,
    ...(metadata && { metadata }),
  };
}

const REGIONS = ['AWS_REGION', 'AWS_DEFAULT_REGION'];
const LOCATIONS = ['GOOGLE_CLOUD_LOCATION', 'CLOUD_ML_REGION'];
const PROJECTS = ['GOOGLE_CLOUD_PROJECT', 'ANTHROPIC_VERTEX_PROJECT_ID'];

/** A value that may come from the environment or a credentials file, which no schema has seen. */
function checked(value: string, key: keyof typeof platformKeys, path: Path, findings: Findings) {
  const { pattern = '', 'x-mismatch': mismatch } = platformKeys[key];
  if (!new RegExp(pattern).test(value)) {
    findings.problems.push({ path, key: true, message: `its ${key} ${mismatch}` });
  }
  return value;
}

/** Signs of a machine of Google's, whose metadata server gives tokens: its maker, or what its services set. */
function isAtGoogle(file: string, environment: Environment): boolean {
  if (existsSync(file)) return false;
  const variables = ['K_SERVICE', 'CLOUD_RUN_JOB', 'GCE_METADATA_HOST', 'GCE_METADATA_IP'];
  if (variables.some((name) => environment.variable(name) !== undefined)) return true;
  try {
    return /^Google/.test(readFileSync('/sys/class/dmi/id/product_name', 'utf8'));
  } catch {
    return false;
  }
}

/** Bytes of a credentials file; one has a few thousand. */
const MAX_CREDENTIALS_BYTES = 1024 * 1024;

/** What is in the credentials file. One that is not there yet is a warning: it is read for each token. */
function readable(
  file: string,
  own: OwnPlatform,
  path: Path,
  findings: Findings,
): GoogleCredentials | undefined {
  const isNamed = own.credentialsFile !== undefined;
  const at = isNamed ? [...path, 'credentials_file'] : path;
  let text: string;
  try {
    text = readNamedFile(file, MAX_CREDENTIALS_BYTES);
  } catch (thrown) {
    const hint = isNamed
      ? ''
      : "; set credentials_file or GOOGLE_APPLICATION_CREDENTIALS, unless this is a machine of Google's";
    const message = `has no credentials: the file ${file} ${messageOf(thrown)}${hint}`;
    findings.warnings.push({ path: at, message, key: !isNamed });
    return undefined;
  }
  const credentials = googleCredentials(text);
  if (!('problem' in credentials)) return credentials;
  const message = `the file ${file} ${credentials.problem}`;
  findings.problems.push({ path: at, message, key: !isNamed });
  return undefined;
}

/**
 * The address before the protocol's own paths, without a trailing slash.
 * @param given by the file or a preset; undefined: that of the platform, if there is one
 */
export function baseUrlOf(
  given: string | undefined,
  protocol: ProtocolName | undefined,
  platform: PlatformConfig | undefined,
): string | undefined {
  const written = given === undefined ? undefined : withoutTrailing(given, '/');
  if (protocol === undefined) return written;
  if (platform !== undefined) return platformBaseUrl(platform, protocol, written);
  // Google's SDKs take the address without the version, which they add themselves.
  const versionless = protocol === 'google-gemini' && written !== undefined && isBare(written);
  return versionless ? `${written}/v1beta` : written;
}

/** Has the address no path? */
const isBare = (base: string): boolean => /^https?:\/\/[^/]+$/.test(base);

function platformBaseUrl(
  platform: PlatformConfig,
  protocol: ProtocolName,
  written: string | undefined,
): string {
  if (platform.name === 'azure') return azureBaseUrl(platform, written);
  if (platform.name === 'bedrock') {
    const { region } = platform;
    const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
    return written ?? `https://bedrock-runtime.${region}.${domain}`;
  }
  const { project, location } = platform;
  const isClaude = protocol === 'anthropic-messages';
  // The versions that Anthropic's and Google's own SDKs use.
  const version = isClaude ? 'v1' : 'v1beta1';
  const base = written ?? `https://${vertexHost(location)}`;
  const versioned = isBare(base) ? `${base}/${version}` : base;
  const publisher = isClaude ? 'anthropic' : 'google';
  return `${versioned}/projects/${project}/locations/${location}/publishers/${publisher}`;
}

/** https://docs.cloud.google.com/vertex-ai/docs/general/locations, and the hosts that Anthropic's SDK uses. */
function vertexHost(location: string): string {
  if (location === 'global') return 'aiplatform.googleapis.com';
  if (location === 'us' || location === 'eu') return `aiplatform.${location}.rep.googleapis.com`;
  return `${location}-aiplatform.googleapis.com`;
}
