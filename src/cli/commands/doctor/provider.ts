/** Tests a provider: its host name, the connection, every key, the model list, and a completion of one token. */

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Secret } from '../../../config/secret.ts';
import type { ProviderConfig } from '../../../config/sections/providers.ts';
import { asGatewayError, GatewayError } from '../../../conversation/errors.ts';
import { decoded } from '../../../gateway/response-body.ts';
import { isLocalNetwork } from '../../../lib/http/local-address.ts';
import { isObject, type Json, tryParse } from '../../../lib/json/json.ts';
import { Abort } from '../../../lib/loop/abort.ts';
import { suggest } from '../../../lib/text/did-you-mean.ts';
import { globTest, isGlob } from '../../../lib/text/glob.ts';
import { LIST_PATH, modelIds, vendorHeaders, vendorUrl } from '../../../upstream/model-list.ts';
import { platformOf } from '../../../upstream/platform/index.ts';
import { networkTo } from '../../../upstream/pool.ts';
import type { UpstreamRequest } from '../../../upstream/transport.ts';
import { PRESETS, presetOf } from '../../../vendors/index.ts';
import { plural } from '../../terminal.ts';
import {
  diagnoseNetworkError,
  diagnoseRefusal,
  type Finding,
  finding,
  plainHttpToTls,
  saysNoModel,
  vendorMessage,
} from './diagnosis.ts';

export interface ProbeOptions extends SendProbeOptions {
  /** Where a model of the provider is asked, e.g. `/chat/completions`. */
  readonly upstreamPath: (model: string) => string;
  /** Asks for a completion, which costs a token. */
  readonly completion: boolean;
  /** Tried in place of the provider's first model. */
  readonly model?: string | undefined;
  /** Models that routes and aliases send to this provider. */
  readonly targets?: readonly string[];
}

/** Runs the checks in order, and stops when the next one cannot add anything. */
export async function probeProvider(
  provider: ProviderConfig,
  options: ProbeOptions,
): Promise<readonly Finding[]> {
  const about = `provider ${provider.name}`;
  if (provider.baseUrl.startsWith('demo:')) {
    return [finding(about, 'skip', 'built in; it answers without a vendor')];
  }
  if (!URL.canParse(provider.baseUrl)) {
    return [finding(about, 'fail', `base_url is no URL: ${provider.baseUrl}`)];
  }
  const url = new URL(provider.baseUrl);
  const proxy = provider.transport.proxy ?? options.proxy;
  if (proxy === undefined) {
    const unknown = await resolveFailure(url);
    if (unknown !== undefined) return [finding(about, 'fail', unknown.message, unknown.hint)];
  }
  if (provider.platform !== undefined) return probePlatform(provider, about, options);
  const missing = missingKey(provider, about);
  if (missing !== undefined) return [missing];

  const found: Finding[] = [];
  const keys: readonly (Secret | undefined)[] =
    provider.keys.length > 0 ? provider.keys : [undefined];
  let good: { key: Secret | undefined; listed: readonly string[] | undefined } | undefined;
  const nameOf = (key: Secret | undefined) =>
    key === undefined ? undefined : keyName(provider, key);
  for (const key of keys) {
    const list = await sendProbe(provider, LIST_PATH[provider.protocol], undefined, key, options);
    if ('failure' in list)
      return [...found, finding(about, 'fail', list.failure.message, list.failure.hint)];
    const { status, text, json } = list.answer;
    if (status === 400 && /plain http request.*https port/i.test(text)) {
      const { message, hint } = plainHttpToTls(url.host);
      return [...found, finding(about, 'fail', message, hint)];
    }
    if (status === 401 || status === 403) {
      const diagnosis = diagnoseRefusal(status, text, nameOf(key));
      found.push(finding(about, 'fail', diagnosis.message, diagnosis.hint));
      continue;
    }
    const listed = status === 200 ? modelIds(json) : undefined;
    good ??= { key, listed };
    const what =
      listed === undefined
        ? `no model list (${status})`
        : `${plural(listed.length, 'model')} listed`;
    const who = key === undefined ? '' : `, ${nameOf(key)} accepted`;
    found.push(finding(about, 'ok', `${url.host} answered in ${list.ms} ms${who}, ${what}`));
  }
  if (good === undefined) return found;
  found.push(
    ...servedModels(provider, good.listed, about),
    ...unlistedModels(provider, good.listed, about, options.targets),
  );
  if (!options.completion) return found;
  for (const model of modelsToAsk(options)) {
    found.push(
      await probeCompletion(provider, good.key, good.listed, about, { ...options, model }),
    );
  }
  return found;
}

/** A platform has no list of models: its credentials are tried, then a completion. */
async function probePlatform(
  provider: ProviderConfig,
  about: string,
  options: ProbeOptions,
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  const keys: readonly (Secret | undefined)[] =
    provider.keys.length > 0 ? provider.keys : [undefined];
  if (provider.keys.length === 0) {
    const platform = platformOf(provider, networkTo(provider, options.proxied));
    try {
      const started = performance.now();
      const what = await platform!.authorize();
      const ms = Math.round(performance.now() - started);
      found.push(finding(about, 'ok', `${what} in ${ms} ms`));
    } catch (thrown) {
      return [
        finding(
          about,
          'fail',
          asGatewayError(thrown).message,
          CREDENTIALS_HINT[provider.platform!.name],
        ),
      ];
    }
  }
  if (!options.completion) return found;
  for (const key of keys) {
    found.push(await probeCompletion(provider, key, undefined, about, options));
  }
  return found;
}

const CREDENTIALS_HINT = {
  vertex:
    'Set credentials_file to the key of a service account, or run gcloud auth application-default login.',
  azure:
    'Set AZURE_OPENAI_API_KEY, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET (or AZURE_FEDERATED_TOKEN_FILE), or give the machine an identity.',
  bedrock:
    'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, aws_profile, or a key of Bedrock in AWS_BEARER_TOKEN_BEDROCK.',
} as const;

/** `keys[0] ${ZHIPU_API_KEY}`: its index in the file, and its text there. */
const keyName = ({ keys }: ProviderConfig, key: Secret) =>
  `keys[${keys.indexOf(key)}] ${key.origin}`;

async function resolveFailure(url: URL) {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) return undefined;
  try {
    await lookup(host);
    return undefined;
  } catch (thrown) {
    return diagnoseNetworkError(thrown, url, 0, undefined);
  }
}

function missingKey({ auth, keys, name, baseUrl, headers }: ProviderConfig, about: string) {
  const { hostname } = new URL(baseUrl);
  // Servers on this machine or in its network often need no key; `demo:` has no host.
  const local = hostname === '' || isLocalNetwork(hostname);
  const own = Object.keys(headers).some((header) =>
    /^(authorization|x-api-key|api-key)$/i.test(header),
  );
  if (auth === 'none' || keys.length > 0 || local || own) return undefined;
  const variable = presetOf(name)?.variables[0];
  const hint =
    variable === undefined
      ? `Put one under providers.${name}.keys, best as a reference: keys: ["\${MY_KEY}"].`
      : `Set ${variable}, or put keys: ["\${${variable}}"] under providers.${name}.`;
  return finding(about, 'fail', 'there is no API key', hint);
}

const MAX_SHOWN = 12;

function servedModels(
  { models }: ProviderConfig,
  listed: readonly string[] | undefined,
  about: string,
): Finding[] {
  const fits = models.filter(isGlob).map(globTest);
  const names = (listed ?? []).filter((name) => fits.some((test) => test(name)));
  if (names.length === 0) return [];
  return [finding(about, 'ok', `${models.filter(isGlob).join(', ')}: ${namesShown(names)}`)];
}

function unlistedModels(
  provider: ProviderConfig,
  listed: readonly string[] | undefined,
  about: string,
  targets: readonly string[] = [],
): Finding[] {
  if (listed === undefined || listed.length === 0) return [];
  const known = new Set(listed);
  const named = isOfPreset(provider.models) ? targets : [...provider.models, ...targets];
  return [...new Set(named)]
    .filter((model) => !isGlob(model) && !known.has(model))
    .map((model) => {
      const near = suggest(model, listed);
      const hint = near === undefined ? listedModels(listed) : `Did you mean "${near}"?`;
      const where = provider.models.includes(model) ? '' : ', which a route or alias sends there';
      return finding(about, 'warn', `the vendor does not list the model "${model}"${where}`, hint);
    });
}

const MAX_ASKED = 3;

/** The model that was asked for, else those that routes and aliases send here: undefined stands for the usual one. */
function modelsToAsk({ model, targets = [] }: ProbeOptions): readonly (string | undefined)[] {
  if (model !== undefined) return [model];
  const routed = [...new Set(targets)].filter((one) => !isGlob(one)).slice(0, MAX_ASKED);
  return routed.length > 0 ? routed : [undefined];
}

/** These models came with the preset: the user never wrote their names. */
const isOfPreset = (models: readonly string[]): boolean =>
  Object.values(PRESETS).some((preset) => preset.models.join('\n') === models.join('\n'));

async function probeCompletion(
  provider: ProviderConfig,
  key: Secret | undefined,
  listed: readonly string[] | undefined,
  about: string,
  options: ProbeOptions,
): Promise<Finding> {
  const model = modelToTry(provider, listed, options);
  if (model === undefined) {
    return finding(about, 'skip', 'no completion tried: no model is named', 'Pass --model NAME.');
  }
  const path = options.upstreamPath(model);
  const result = await sendProbe(provider, path, bodyFor(provider, model), key, options);
  if ('failure' in result) {
    return finding(about, 'fail', result.failure.message, result.failure.hint);
  }
  const { answer, ms } = result;
  if (answer.status === 200) return judgeAnswer(answer, about, { provider, model, ms });
  return judgeRefusal(answer, about, { provider, model, key, listed, path });
}

const modelToTry = (
  { models }: ProviderConfig,
  listed: readonly string[] | undefined,
  { model }: ProbeOptions,
): string | undefined =>
  model ??
  models.find((name) => !isGlob(name) && (listed?.includes(name) ?? true)) ??
  models.find((name) => !isGlob(name)) ??
  listed?.[0];

function judgeAnswer(
  { text, json }: ProbeAnswer,
  about: string,
  { provider, model, ms }: { provider: ProviderConfig; model: string; ms: number },
): Finding {
  if (!isObject(json)) {
    const message = `${provider.baseUrl} answers with something that is no JSON`;
    return finding(about, 'fail', message, WRONG_ENDPOINT);
  }
  const answered = ['choices', 'output', 'content', 'candidates'].some((member) =>
    Array.isArray(json[member]),
  );
  if (answered) return finding(about, 'ok', `${model} answered in ${ms} ms`);
  const message = `${model}: 200 without a completion: "${vendorMessage(text)}"`;
  return finding(about, 'fail', message, WRONG_ENDPOINT);
}

interface RefusedProbe {
  readonly provider: ProviderConfig;
  readonly model: string;
  readonly key: Secret | undefined;
  readonly listed: readonly string[] | undefined;
  /** Where the model was asked, behind the address of the provider. */
  readonly path: string;
}

function judgeRefusal(
  { status, text }: ProbeAnswer,
  about: string,
  { provider, model, key, listed = [], path }: RefusedProbe,
): Finding {
  const message = vendorMessage(text);
  // Reasoning models that need more than one token refuse with this message: the model exists and answers.
  if (status === 400 && /max_?(output_?|completion_?)?tokens|output limit/i.test(message)) {
    return finding(about, 'ok', `${model} is there (it wants more than one token to answer)`);
  }
  if (saysNoModel(status, text)) {
    const others = listed.filter((one) => one !== model);
    const near = suggest(model, others);
    const list = listedModels(others) ?? "Look at the vendor's model list.";
    const hint = near === undefined ? list : `Did you mean "${near}"?`;
    const what = `the model "${model}" is not served (${status}): "${message}"`;
    return finding(about, 'fail', what, hint);
  }
  if (status === 404 || status === 405) {
    const what = `nothing is at ${provider.baseUrl}${path} (${status})`;
    return finding(about, 'fail', what, WRONG_ENDPOINT);
  }
  const name = key === undefined ? undefined : keyName(provider, key);
  const diagnosis = diagnoseRefusal(status, text, name);
  const severity = status === 429 ? 'warn' : 'fail';
  return finding(about, severity, `${model}: ${diagnosis.message}`, diagnosis.hint);
}

/** The first models of the vendor's list, as a sentence; undefined without a list. */
function listedModels(listed: readonly string[]): string | undefined {
  if (listed.length === 0) return undefined;
  return `It lists ${namesShown(listed)}.`;
}

function namesShown(names: readonly string[]): string {
  const more = names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : '';
  return names.slice(0, MAX_SHOWN).join(', ') + more;
}

const WRONG_ENDPOINT =
  'base_url or protocol is wrong: OpenAI kinds take the address before /chat/completions or /responses (mostly ending in /v1), anthropic-messages the one before /v1/messages, google-gemini the one before /models/.';

function bodyFor({ protocol, profile }: ProviderConfig, model: string): Json {
  const messages = [{ role: 'user', content: 'Hi' }];
  if (protocol === 'google-gemini') {
    return {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      generationConfig: { maxOutputTokens: 1 },
    };
  }
  if (protocol === 'anthropic-messages') return { model, max_tokens: 1, messages };
  // OpenAI refuses fewer than 16 here.
  if (protocol === 'openai-responses')
    return { model, max_output_tokens: 16, input: 'Hi', store: false };
  return { model, [profile.maxTokensParam ?? 'max_tokens']: 1, messages };
}

interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Json | undefined;
}

interface SendProbeOptions {
  /** As in {@link Environment}. */
  readonly proxied: (scheme: string) => boolean;
  readonly timeoutMs: number;
  /** The proxy that the environment names for this URL, if any. */
  readonly proxy?: string;
}

type ProbeResult =
  | { readonly answer: ProbeAnswer; readonly ms: number }
  | { readonly failure: { readonly message: string; readonly hint?: string } };

// The longest model lists have some hundred KB.
const LIST_BYTES = 16 * 1024 * 1024;

/** One request, the way that real requests go. Never rejects. @param body undefined: a `GET` */
async function sendProbe(
  provider: ProviderConfig,
  path: string,
  body: Json | undefined,
  key: Secret | undefined,
  { proxied, timeoutMs, proxy }: SendProbeOptions,
): Promise<ProbeResult> {
  const url = vendorUrl(provider, path);
  const own = provider.transport.proxy;
  const started = performance.now();
  const abort = new Abort();
  abort.follow(AbortSignal.timeout(timeoutMs));
  try {
    // The same network path as that of real requests.
    const transport = networkTo(provider, proxied);
    const request: UpstreamRequest = {
      url: url.href,
      method: body === undefined ? 'GET' : 'POST',
      headers: vendorHeaders(provider, key),
      abort,
      ...(body !== undefined && { body: Buffer.from(JSON.stringify(body)) }),
    };
    const platform = platformOf(provider, transport);
    const urlOf = (own: string) => vendorUrl(provider, own).href;
    const { status, body: answer } = decoded(
      platform === undefined
        ? await transport(request)
        : await platform.send({ path, url: urlOf, request, stream: false }),
    );
    const text = new TextDecoder().decode(await answer.readAll(LIST_BYTES));
    const ms = Math.round(performance.now() - started);
    return { answer: { status, text, json: tryParse(text) }, ms };
  } catch (thrown) {
    if (thrown instanceof GatewayError) return { failure: { message: thrown.message } };
    return {
      failure: diagnoseNetworkError(
        thrown,
        url,
        Math.round(timeoutMs / 1000),
        own?.reveal() ?? proxy,
      ),
    };
  }
}
