/** Restricts server tools, and tools that vendors run, to those that the key may use. */

import { GatewayError } from '../../conversation/errors.ts';
import type { Conversation, HostedTool, ProtocolName } from '../../conversation/types.ts';
import type { Policy } from '../../keys/principal.ts';
import { isObject, type Json } from '../../lib/json/json.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { wordSet } from '../../lib/text/words.ts';
import type { ToolRegistry } from './registry.ts';
import type { ServerTool } from './tool.ts';

/** @throws GatewayError permission for a tool that the key may not use */
export function checkTool(policy: Policy, name: string, param = 'tools'): void {
  if (policy.allowsTool(name)) return;
  throw new GatewayError(
    'permission',
    `This API key may not use the tool '${printableLine(name, 200)}'.`,
    { code: 'tool_not_allowed', param, retryable: false },
  );
}

/** Declared like tools of a vendor, but the client runs them, or they only look among the tools that it declared. */
const OF_CLIENTS = wordSet(
  'apply_patch computer computerUse computer_use computer_use_preview local_shell tool_search',
);

function runsElsewhere({ name, options }: HostedTool): boolean {
  if (OF_CLIENTS.has(name)) return false;
  // The shell of Responses: the client's own unless it names a container of the vendor's.
  const { environment } = options;
  const isLocal = environment === undefined || environment === null;
  return name !== 'shell' || !(isLocal || (isObject(environment) && environment.type === 'local'));
}

/**
 * A key with a list of tools has its requests decoded: a tool of a vendor may have any name, written in any way.
 * @throws GatewayError permission for a hosted tool of the request that the key may not use
 */
export function checkHostedTools(
  policy: Policy,
  request: { readonly conversation: Conversation },
): void {
  if (policy.everyTool) return;
  const { tools, origin } = request.conversation;
  for (const tool of tools) {
    if (tool.type === 'hosted' && runsElsewhere(tool)) checkTool(policy, tool.name);
  }
  // Messages: with its older beta a list of servers needs no declaration among the tools.
  const servers = isObject(origin?.value) ? origin.value.mcp_servers : undefined;
  if (Array.isArray(servers) && servers.length > 0) checkTool(policy, 'mcp_toolset');
  if (!isObject(origin?.value)) return;
  for (const [field, name] of TOOL_FIELDS[origin.protocol] ?? []) {
    const stored = origin.value[field];
    if (isOn(stored)) checkTool(policy, name, field);
  }
}

const isOn = (value: Json | undefined): boolean =>
  Array.isArray(value)
    ? value.length > 0
    : isObject(value)
      ? value.mode !== 'off'
      : value !== undefined && value !== null && value !== false;

/** Fields that name something kept at the vendor or switch on what it runs, and the name by which a key may use it. */
const TOOL_FIELDS: Partial<
  Record<ProtocolName, readonly (readonly [field: string, name: string])[]>
> = {
  'openai-responses': [['prompt', 'stored_prompt']],
  'openai-chat': [
    ['preset', 'stored_prompt'],
    // OpenRouter, Qwen, xAI, Groq.
    ['plugins', 'plugins'],
    ['enable_search', 'web_search'],
    ['enable_code_interpreter', 'code_execution'],
    ['search_parameters', 'web_search'],
    ['compound_custom', 'compound_custom'],
  ],
  'google-gemini': [
    ['cachedContent', 'cached_content'],
    ['cached_content', 'cached_content'],
  ],
};

export function permittedTools(registry: ToolRegistry, policy: Policy): ToolRegistry {
  if (policy.everyTool) return registry;
  const ifAllowed = (tool: ServerTool | undefined) =>
    tool !== undefined && policy.allowsTool(tool.name) ? tool : undefined;
  return {
    get tools() {
      return registry.tools.filter(({ name }) => policy.allowsTool(name));
    },
    named: (name) => ifAllowed(registry.named(name)),
    standIn: (hosted) => ifAllowed(registry.standIn(hosted)),
    get starting() {
      return registry.starting === true;
    },
    ready: async (signal, userText) => registry.ready?.(signal, userText),
  };
}
