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
  type Diagnosis,
  diagnoseNetworkError,
  diagnoseRefusal,
  type Finding,
  finding,
  plainHttpToTls,
  saysNoModel,
  vendorMessage,
} from './diagnosis.ts';

export interface ProbeOptions {
  /** As in {@link Environment}. */
  readonly proxied: (scheme: string) => boolean;
  readonly timeoutMs: number;
  /** The proxy that the environment names for this URL, if any. */
  readonly proxy?: string | undefined;
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
export const probeProvider = (
  provider: ProviderConfig,
  options: ProbeOptions,
): Promise<readonly Finding[]> => new ProviderProbe(provider, options).run();

interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Json | undefined;
  readonly ms: number;
}

const MAX_SHOWN = 12;
const MAX_ASKED = 3;
// The longest model lists have some hundred KB.
const LIST_BYTES = 16 * 1024 * 1024;

class ProviderProbe {
  /** The models that the vendor lists; undefined: it gave no list. */
  #listed: readonly string[] | undefined;

  constructor(
    private readonly provider: ProviderConfig,
    private readonly options: ProbeOptions,
  ) {}

  async run(): Promise<readonly Finding[]> {
    const { baseUrl, transport, platform } = this.provider;
    if (baseUrl.startsWith('demo:')) {
      return [this.#finding('skip', 'built in; it answers without a vendor')];
    }
    if (!URL.canParse(baseUrl)) return [this.#finding('fail', `base_url is no URL: ${baseUrl}`)];
    const url = new URL(baseUrl);
    if (transport.proxy === undefined && this.options.proxy === undefined) {
      const unknown = await resolveFailure(url);
      if (unknown !== undefined) return [this.#failed(unknown)];
    }
    if (platform !== undefined) return this.#probePlatform();
    const missing = this.#missingKey();
    if (missing !== undefined) return [missing];
    const found: Finding[] = [];
    let good: { readonly key: Secret | undefined } | undefined;
    for (const key of this.#keys) {
      const answer = await this.#send(LIST_PATH[this.provider.protocol], undefined, key);
      if ('message' in answer) return [...found, this.#failed(answer)];
      const { status, text, json, ms } = answer;
      if (status === 400 && /plain http request.*https port/i.test(text)) {
        return [...found, this.#failed(plainHttpToTls(url.host))];
      }
      if (status === 401 || status === 403) {
        found.push(this.#failed(diagnoseRefusal(status, text, this.#nameOf(key))));
        continue;
      }
      const listed = status === 200 ? modelIds(json) : undefined;
      if (good === undefined) this.#listed = listed;
      good ??= { key };
      const what = listed
        ? `${plural(listed.length, 'model')} listed`
        : `no model list (${status})`;
      const who = key === undefined ? '' : `, ${this.#nameOf(key)} accepted`;
      found.push(this.#finding('ok', `${url.host} answered in ${ms} ms${who}, ${what}`));
    }
    if (good === undefined) return found;
    found.push(...this.#servedModels(), ...this.#unlistedModels());
    if (!this.options.completion) return found;
    for (const model of this.#modelsToAsk()) found.push(await this.#complete(good.key, model));
    return found;
  }

  /** A platform has no list of models: its credentials are tried, then a completion. */
  async #probePlatform(): Promise<readonly Finding[]> {
    const { provider, options } = this;
    const found: Finding[] = [];
    if (provider.keys.length === 0) {
      const platform = platformOf(provider, networkTo(provider, options.proxied));
      try {
        const started = performance.now();
        const what = await platform!.authorize();
        found.push(this.#finding('ok', `${what} in ${Math.round(performance.now() - started)} ms`));
      } catch (thrown) {
        const hint = CREDENTIALS_HINT[provider.platform!.name];
        return [this.#finding('fail', asGatewayError(thrown).message, hint)];
      }
    }
    if (!options.completion) return found;
    for (const key of this.#keys) found.push(await this.#complete(key, options.model));
    return found;
  }

  #finding(status: Finding['status'], message: string, hint?: string): Finding {
    return finding(`provider ${this.provider.name}`, status, message, hint);
  }

  #failed({ message, hint }: Diagnosis): Finding {
    return this.#finding('fail', message, hint);
  }

  get #keys(): readonly (Secret | undefined)[] {
    const { keys } = this.provider;
    return keys.length > 0 ? keys : [undefined];
  }

  /** `keys[0] ${ZHIPU_API_KEY}`: its index in the file, and its text there. */
  #nameOf(key: Secret | undefined): string | undefined {
    return key && `keys[${this.provider.keys.indexOf(key)}] ${key.origin}`;
  }

  #missingKey(): Finding | undefined {
    const { auth, keys, name, baseUrl, headers } = this.provider;
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
    return this.#finding('fail', 'there is no API key', hint);
  }

  #servedModels(): readonly Finding[] {
    const globs = this.provider.models.filter(isGlob);
    const fits = globs.map(globTest);
    const names = (this.#listed ?? []).filter((name) => fits.some((test) => test(name)));
    if (names.length === 0) return [];
    return [this.#finding('ok', `${globs.join(', ')}: ${namesShown(names)}`)];
  }

  #unlistedModels(): readonly Finding[] {
    const listed = this.#listed ?? [];
    if (listed.length === 0) return [];
    const { models } = this.provider;
    const { targets = [] } = this.options;
    const known = new Set(listed);
    return [...new Set(isOfPreset(models) ? targets : [...models, ...targets])]
      .filter((model) => !isGlob(model) && !known.has(model))
      .map((model) => {
        const where = models.includes(model) ? '' : ', which a route or alias sends there';
        const what = `the vendor does not list the model "${model}"${where}`;
        return this.#finding('warn', what, meantOrListed(model, listed));
      });
  }

  /** The model that was asked for, else those that routes and aliases send here: undefined stands for the usual one. */
  #modelsToAsk(): readonly (string | undefined)[] {
    const { model, targets = [] } = this.options;
    if (model !== undefined) return [model];
    const routed = [...new Set(targets)].filter((one) => !isGlob(one)).slice(0, MAX_ASKED);
    return routed.length > 0 ? routed : [undefined];
  }

  async #complete(key: Secret | undefined, asked: string | undefined): Promise<Finding> {
    const { provider } = this;
    const names = provider.models.filter((name) => !isGlob(name));
    const model =
      asked ??
      names.find((name) => this.#listed?.includes(name) ?? true) ??
      names[0] ??
      this.#listed?.[0];
    if (model === undefined) {
      return this.#finding('skip', 'no completion tried: no model is named', 'Pass --model NAME.');
    }
    const path = this.options.upstreamPath(model);
    const answer = await this.#send(path, bodyFor(provider, model), key);
    if ('message' in answer) return this.#failed(answer);
    return answer.status === 200
      ? this.#judgeAnswer(answer, model)
      : this.#judgeRefusal(answer, model, path, key);
  }

  #judgeAnswer({ text, json, ms }: ProbeAnswer, model: string): Finding {
    if (!isObject(json)) {
      const what = `${this.provider.baseUrl} answers with something that is no JSON`;
      return this.#finding('fail', what, WRONG_ENDPOINT);
    }
    const answered = ['choices', 'output', 'content', 'candidates'].some((member) =>
      Array.isArray(json[member]),
    );
    if (answered) return this.#finding('ok', `${model} answered in ${ms} ms`);
    const what = `${model}: 200 without a completion: "${vendorMessage(text)}"`;
    return this.#finding('fail', what, WRONG_ENDPOINT);
  }

  /** @param path where the model was asked, behind the address of the provider */
  #judgeRefusal(
    { status, text }: ProbeAnswer,
    model: string,
    path: string,
    key: Secret | undefined,
  ): Finding {
    const message = vendorMessage(text);
    // Reasoning models that need more than one token refuse with this message: the model exists and answers.
    if (status === 400 && /max_?(output_?|completion_?)?tokens|output limit/i.test(message)) {
      return this.#finding('ok', `${model} is there (it wants more than one token to answer)`);
    }
    if (saysNoModel(status, text)) {
      const others = (this.#listed ?? []).filter((one) => one !== model);
      const hint = meantOrListed(model, others) ?? "Look at the vendor's model list.";
      return this.#finding(
        'fail',
        `the model "${model}" is not served (${status}): "${message}"`,
        hint,
      );
    }
    if (status === 404 || status === 405) {
      const what = `nothing is at ${this.provider.baseUrl}${path} (${status})`;
      return this.#finding('fail', what, WRONG_ENDPOINT);
    }
    const diagnosis = diagnoseRefusal(status, text, this.#nameOf(key));
    const severity = status === 429 ? 'warn' : 'fail';
    return this.#finding(severity, `${model}: ${diagnosis.message}`, diagnosis.hint);
  }

  /** One request, the way that real requests go; else why it failed. Never rejects. @param body undefined: a `GET` */
  async #send(
    path: string,
    body: Json | undefined,
    key: Secret | undefined,
  ): Promise<ProbeAnswer | Diagnosis> {
    const { provider } = this;
    const { proxied, timeoutMs, proxy } = this.options;
    const url = vendorUrl(provider, path);
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
      return { status, text, json: tryParse(text), ms };
    } catch (thrown) {
      if (thrown instanceof GatewayError) return { message: thrown.message };
      const by = provider.transport.proxy?.reveal() ?? proxy;
      return diagnoseNetworkError(thrown, url, Math.round(timeoutMs / 1000), by);
    }
  }
}

const CREDENTIALS_HINT = {
  vertex:
    'Set credentials_file to the key of a service account, or run gcloud auth application-default login.',
  azure:
    'Set AZURE_OPENAI_API_KEY, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET (or AZURE_FEDERATED_TOKEN_FILE), or give the machine an identity.',
  bedrock:
    'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, aws_profile, or a key of Bedrock in AWS_BEARER_TOKEN_BEDROCK.',
} as const;

async function resolveFailure(url: URL): Promise<Diagnosis | undefined> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) return undefined;
  try {
    await lookup(host);
    return undefined;
  } catch (thrown) {
    return diagnoseNetworkError(thrown, url, 0, undefined);
  }
}

/** These models came with the preset: the user never wrote their names. */
const isOfPreset = (models: readonly string[]): boolean =>
  Object.values(PRESETS).some((preset) => preset.models.join('\n') === models.join('\n'));

/** The model of the vendor's list that was probably meant, else the first ones; undefined without a list. */
function meantOrListed(model: string, listed: readonly string[]): string | undefined {
  const near = suggest(model, listed);
  if (near !== undefined) return `Did you mean "${near}"?`;
  return listed.length === 0 ? undefined : `It lists ${namesShown(listed)}.`;
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
