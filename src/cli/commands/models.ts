import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { followModels, homeModelsPath, modelsDate } from '../../config/models/model-facts.ts';
import { problemOfModels } from '../../config/models/model-schema.ts';
import { ModelsFile, verifiedText } from '../../config/models/models-file.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import { readUpTo } from '../../lib/http/read-up-to.ts';
import { isObject, type Json, tryParse } from '../../lib/json/json.ts';
import { isGlob } from '../../lib/text/glob.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import {
  type Explanation,
  explain,
  explainText,
  modelsWith,
  openProviders,
  plainRequest,
  type RestingTarget,
  type RouteRequest,
  requestFacts,
  route,
  routingTable,
} from '../../routing/index.ts';
import { askForModels, ModelLists } from '../../upstream/model-list.ts';
import { bodyProtocol } from '../body-protocol.ts';
import {
  type CommandServices,
  type CommandSpec,
  type Invocation,
  JSON_OPTION,
  UsageError,
} from '../command.ts';
import { loadToLook } from '../load-config.ts';
import { restingTargets } from '../running-gateway.ts';
import { type Columns, printTable } from '../terminal.ts';
import { readNamed, writeWhole } from '../whole-file.ts';

export const MODELS: CommandSpec = {
  name: 'models',
  summary: 'list models and their targets, or explain where a request goes',
  description: [
    'If a provider takes names by pattern, its vendor is asked for its model list. A vendor that does not answer within two seconds is listed as in the configuration.',
    '--explain takes a model name, a request body as JSON, or @FILE, and shows which rule decides and why. If the gateway is running, it also shows which targets cool down.',
  ],
  arguments: [
    {
      name: 'action',
      summary:
        'update: take over a newer file of model facts (prices, windows, what requests must look like)',
      choices: ['update'],
    },
    {
      name: 'source',
      summary: 'for update: a file or a URL; left out: the newest of the project, over the network',
    },
  ],
  options: {
    explain: { value: 'REQUEST', summary: 'a model name, a JSON body, or @FILE' },
    protocol: {
      value: 'NAME',
      summary: "with --explain: the client's protocol",
      choices: PROTOCOL_NAMES,
      default: 'guessed from the body',
    },
    offline: { summary: 'use only the configuration; contact no vendor and no running gateway' },
    json: JSON_OPTION,
  },
  examples: {
    'hopgate models': 'Prints a table.',
    'hopgate models --explain claude-sonnet-5-5': 'Shows where a model name goes.',
    'hopgate models update ./models.jsonl':
      'Takes over newer facts of models, if a release has signed them.',
    'hopgate models --explain @request.json': 'Shows where a recorded request goes.',
  },
  exits: {
    0: 'printed',
    1: 'the configuration cannot be used, no target takes the request, or the file is refused',
  },
  run: runModels,
};

/** Where each name comes from, in words; `--json` has the kind. */
const NAMED_BY = {
  plain: 'models of the provider',
  rule: 'route',
  alias: 'alias',
  direct: 'provider/model',
  claude: 'model_list.claude_aliases',
  vendor: 'list of the vendor',
};

async function runModels(invocation: Invocation): Promise<number> {
  const [action, source] = invocation.arguments;
  if (action === 'update') return await updateModels(invocation, source);
  const config = await loadToLook(invocation);
  if (config === undefined) return 1;
  const routing = routingTable(config);
  const request = invocation.text('explain');
  if (request !== undefined) {
    const resting = invocation.flag('offline')
      ? []
      : await restingTargets(config, invocation.io.fetch);
    return explainRequest(invocation, routing, request, resting);
  }
  const { out, flag, io } = invocation;
  const open = openProviders(config);
  const lists = new ModelLists(askForModels(io.environment.proxies));
  const listed = await lists.of(flag('offline') ? [] : open);
  const items = modelsWith(config, listed);
  if (flag('json')) {
    const list = items.map(({ id, provider, kind, target }) => ({
      id,
      provider,
      kind,
      target: target === undefined ? null : `${target.provider}/${target.model}`,
      protocol: target?.protocol ?? null,
    }));
    out.line(JSON.stringify({ models: list }, null, 2));
    return 0;
  }
  // A route's name has no target of its own: the first one that the route chooses now.
  const decided = items.map((item) => {
    if (item.target !== undefined) return { ...item, more: '' };
    const decision = route(plainRequest(item.id, 'openai-chat', Date.now()), routing);
    const [first, second] = decision.ok ? decision.targets : [];
    return { ...item, target: first?.target, more: second === undefined ? '' : ', …' };
  });
  const columns: Columns<(typeof decided)[number]> = {
    MODEL: ({ id }) => id,
    'GOES TO': ({ provider, target, more }) =>
      target ? `${target.provider}/${target.model}${more}` : provider,
    PROTOCOL: ({ target }) => target?.protocol ?? '',
    'NAMED BY': ({ kind }) => NAMED_BY[kind],
  };
  printTable(out, decided, columns, { spare: ['PROTOCOL', 'NAMED BY'] });
  if (open.length > 0) {
    out.line();
    out.line(out.paint('dim', 'Also by pattern:'));
    for (const { name, models: own } of open) {
      const globs = own.filter(isGlob).join(', ') || 'through routes';
      const none = listed.has(name) || flag('offline') ? '' : ' (its vendor gave no list just now)';
      out.line(out.paint('dim', `  ${name}: ${globs}${none}`));
    }
  }
  return 0;
}

async function explainRequest(
  invocation: Invocation,
  routing: ReturnType<typeof routingTable>,
  request: string,
  resting: readonly RestingTarget[],
): Promise<number> {
  const { out, err, flag, text, io } = invocation;
  const body = parseNamedRequest(request, io.cwd);
  const protocol = (text('protocol') as ProtocolName | undefined) ?? protocolOf(body);
  const { protocols } = await invocation.services();
  try {
    const explanation = explain(routeRequest(body, protocol, protocols), routing, resting);
    out.line(
      flag('json')
        ? JSON.stringify(explanationForScripts(explanation), null, 2)
        : explainText(explanation),
    );
    return explanation.decision.ok ? 0 : 1;
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    err.line(`hopgate: this is not a valid ${protocol} request: ${thrown.message}`);
    return 1;
  }
}

type NamedRequest = ReturnType<typeof parseNamedRequest>;

function routeRequest(
  body: NamedRequest,
  protocol: ProtocolName,
  protocols: CommandServices['protocols'],
): RouteRequest {
  const time = Date.now();
  if (typeof body === 'string') return plainRequest(body, protocol, time);
  let decoded: Conversation | undefined;
  return requestFacts({
    model: typeof body.model === 'string' ? body.model : '',
    protocol,
    stream: body.stream === true,
    bytes: Buffer.byteLength(JSON.stringify(body)),
    headers: new Headers(),
    affinity: '',
    time,
    request: {
      get conversation() {
        decoded ??= protocols[protocol].decodeRequest(body);
        return decoded;
      },
    },
  });
}

/** The explanation for scripts: targets by name, without the settings of their providers. */
function explanationForScripts({ decision, ...rest }: Explanation) {
  return {
    ...rest,
    ok: decision.ok,
    reason: decision.reason,
    targets: decision.ok
      ? decision.targets.map(({ target: { provider, model, protocol, profile } }) => ({
          provider,
          model,
          protocol,
          profile: profile.name,
        }))
      : [],
    ...(decision.ok ? {} : { error: decision.error.message }),
  };
}

/** A body, or the name of a model. `@FILE` reads a file. */
function parseNamedRequest(
  request: string,
  cwd: string,
): string | { readonly [key: string]: Json | undefined } {
  let text = request.trim();
  if (text.startsWith('@')) {
    try {
      text = readNamed(resolve(cwd, text.slice(1)))
        .toString()
        .trim();
    } catch {
      throw new UsageError(`"${text.slice(1)}" cannot be read.`);
    }
  }
  if (!text.startsWith('{')) return text;
  const body = tryParse(text);
  if (!isObject(body)) throw new UsageError('The request is not a JSON object.');
  return body;
}

/** A plain dialogue is the same in Chat and Messages. */
function protocolOf(body: NamedRequest): ProtocolName {
  if (typeof body === 'string') return 'openai-chat';
  return bodyProtocol(body) ?? ('thinking' in body ? 'anthropic-messages' : 'openai-chat');
}

/** Ten times what the file has. */
const MAX_BYTES = 5 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** The address of the newest release of the file. */
const NEWEST = new URL('models.jsonl', manifest.homepage).href;

async function updateModels(invocation: Invocation, source: string = NEWEST): Promise<number> {
  const { out, err, flag, io } = invocation;
  const { home } = io.environment;
  followModels(home);
  const before = modelsDate();
  const refused = (why: string): number => {
    const message = `${printableLine(source, 300)} is refused: ${why}. The facts of ${before} stay.`;
    if (flag('json')) out.line(JSON.stringify({ ok: false, date: before, problem: why }));
    else err.line(`hopgate: ${message}`);
    return 1;
  };
  let signed: string;
  try {
    signed = await textOf(source, invocation);
  } catch (thrown) {
    return refused(messageOf(thrown));
  }
  const text = verifiedText(signed);
  if (text === undefined) return refused('its signature is not that of a release');
  const problem = problemOfModels(text);
  if (problem !== undefined) return refused(problem);
  const { date } = new ModelsFile(text);
  if (date < before) return refused(`it is of ${date}, older than what is known`);
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    writeWhole(homeModelsPath(home), signed);
  } catch (thrown) {
    return refused(messageOf(thrown));
  }
  if (flag('json')) out.line(JSON.stringify({ ok: true, date, before }));
  else {
    out.line(`${out.paint('green', 'ok')}  model facts of ${date} (before: ${before})`);
    out.line(`    ${homeModelsPath(home)}; a running gateway takes them over at once`);
  }
  return 0;
}

async function textOf(source: string, { io }: Invocation): Promise<string> {
  if (!/^https?:\/\//.test(source)) {
    return readNamed(resolve(io.cwd, source), MAX_BYTES).toString();
  }
  const response = await io.fetch(source, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`the answer has status ${response.status}`);
  const { bytes, truncated } = await readUpTo(response.body, MAX_BYTES);
  if (truncated) throw new Error(`it has more than ${MAX_BYTES} bytes`);
  return new TextDecoder().decode(bytes);
}
