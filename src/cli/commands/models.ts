/** `hopgate models`: what clients may ask for and where it goes; with --explain, why a request goes where it goes. */

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { GatewayError } from '../../conversation/errors.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, tryParse } from '../../lib/json/json.ts';
import {
  type Explanation,
  explain,
  explainText,
  modelsWith,
  openProviders,
  plainRequest,
  type RouteRequest,
  requestFacts,
  routingTable,
} from '../../routing/index.ts';
import { askForModels, ModelLists } from '../../upstream/model-list.ts';
import { type CommandServices, type Invocation, UsageError } from '../command.ts';
import { loadOrTell } from '../load-config.ts';
import { fittingTable } from '../terminal.ts';

/** Exit 0; 1 when the configuration cannot be used or, with --explain, nothing takes the request. */
export async function runModels(invocation: Invocation): Promise<number> {
  const config = await loadOrTell(invocation);
  if (config === undefined) return 1;
  const routing = routingTable(config);
  const asked = invocation.text('explain');
  if (asked !== undefined) return explainRequest(invocation, routing, asked);
  const { out, flag, io } = invocation;
  const open = openProviders(config);
  const lists = new ModelLists(askForModels(io.environment.proxies));
  const said = await lists.of(flag('offline') ? [] : open);
  const items = modelsWith(config, said);
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
  const rows = items.map(({ id, provider, kind, target }) => [
    id,
    target === undefined ? provider : `${target.provider}/${target.model}`,
    target?.protocol ?? '',
    kind,
  ]);
  const names = ['MODEL', 'GOES TO', 'SPEAKS', 'FROM'];
  const [head, ...lines] = fittingTable(rows, names, out.columns, ['SPEAKS', 'FROM']);
  out.line(out.paint('bold', head!));
  for (const line of lines) out.line(line);
  if (open.length > 0) {
    out.line();
    out.line(out.paint('dim', 'Also by pattern:'));
    for (const { name, models: own } of open) {
      const globs = own.filter((model) => /[*?]/.test(model)).join(', ') || 'through routes';
      const none = said.has(name) || flag('offline') ? '' : ' (its vendor gave no list just now)';
      out.line(out.paint('dim', `  ${name}: ${globs}${none}`));
    }
  }
  return 0;
}

function explainRequest(
  invocation: Invocation,
  routing: ReturnType<typeof routingTable>,
  asked: string,
): number {
  const { out, err, flag, text, io, deps } = invocation;
  const body = bodyOf(asked, io.cwd);
  const protocol = (text('protocol') as ProtocolName | undefined) ?? protocolOf(body);
  try {
    const explanation = explain(requestOf(body, protocol, deps), routing);
    out.line(flag('json') ? JSON.stringify(shown(explanation), null, 2) : explainText(explanation));
    return explanation.decision.ok ? 0 : 1;
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    err.line(`hopgate: this is no ${protocol} request: ${thrown.message}`);
    return 1;
  }
}

type Body = ReturnType<typeof bodyOf>;

function requestOf(body: Body, protocol: ProtocolName, deps: CommandServices): RouteRequest {
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
        decoded ??= deps.protocols[protocol].decodeRequest(body);
        return decoded;
      },
    },
  });
}

/** What scripts get: no provider's settings, the targets by name. */
function shown({ decision, ...rest }: Explanation) {
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
function bodyOf(asked: string, cwd: string): string | { readonly [key: string]: Json | undefined } {
  let text = asked.trim();
  if (text.startsWith('@')) {
    try {
      text = readFileSync(resolve(cwd, text.slice(1)), 'utf8').trim();
    } catch {
      throw new UsageError(`"${text.slice(1)}" cannot be read.`);
    }
  }
  if (!text.startsWith('{')) return text;
  const body = tryParse(text);
  if (!isObject(body)) throw new UsageError('The request is no JSON object.');
  return body;
}

/** The protocol that a body is most likely written in. */
function protocolOf(body: Body): ProtocolName {
  if (typeof body === 'string') return 'openai-chat';
  if ('input' in body) return 'openai-responses';
  // Chat has no `system` member and no tool with an `input_schema`; Messages always has an output cap.
  const tools = Array.isArray(body.tools) ? (body.tools as readonly Json[]) : [];
  const messages =
    'system' in body ||
    'thinking' in body ||
    tools.some((tool) => isObject(tool) && 'input_schema' in tool);
  return messages ? 'anthropic-messages' : 'openai-chat';
}
