/** A model that writes its calls as DSML text whenever their tools are not declared, and sometimes when they are. */

import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import type { Step } from './fake-upstream/answer.ts';
import { call, type FakeProtocol, say, toolNames, toolResults } from './fake-upstream/index.ts';
import type { Received, Script } from './fake-upstream/server.ts';

export interface PlannedCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/** The model's view of the request. */
export interface ModelView {
  readonly protocol: FakeProtocol;
  readonly body: JsonObject;
  /** Names of the declared tools. */
  readonly tools: readonly string[];
  /** Results of tools in its context, in order. */
  readonly results: readonly string[];
  /** The whole request as text. */
  readonly text: string;
}

/** The model's action: calls, or text; text, then calls, if both are present. */
export interface Plan {
  readonly text?: string;
  readonly calls?: readonly PlannedCall[];
}

export interface LeakyOptions {
  /** Whether the nth request's calls leak although they are declared. */
  readonly leaks?: (n: number) => boolean;
  /** Characters per delta. */
  readonly piece?: number;
}

/** The markup that DeepSeek's models write. */
export function dsml(calls: readonly PlannedCall[]): string {
  const invokes = calls.map(({ name, arguments: args }) => {
    const parameters = Object.entries(args).map(
      ([key, value]) =>
        `<｜DSML｜parameter name="${key}" string="true">${value}</｜DSML｜parameter>\n`,
    );
    return `<｜DSML｜invoke name="${name}">\n${parameters.join('')}</｜DSML｜invoke>\n`;
  });
  return `<｜DSML｜function_calls>\n${invokes.join('')}</｜DSML｜function_calls>`;
}

export function leakyVendor(plan: (result: ModelView) => Plan, options: LeakyOptions = {}): Script {
  return ({ protocol = 'openai-chat', body }: Received, n): Step => {
    const tools = toolNames(protocol, body);
    const results = [...toolResults(protocol, body).values()];
    const { text = '', calls = [] } = plan({
      protocol,
      body,
      tools,
      results,
      text: JSON.stringify(body),
    });
    const delivery = { piece: options.piece ?? 4 };
    const choice = body.tool_choice as { type?: string } | string | undefined;
    const barred = choice === 'none' || (typeof choice === 'object' && choice.type === 'none');
    const declared = !barred && calls.every(({ name }) => tools.includes(name));
    if (calls.length === 0) return say(text, { delivery });
    if (!declared || options.leaks?.(n) === true) {
      return say(`${text}\n\n${dsml(calls)}`, { delivery });
    }
    const native = call(...calls.map((one) => ({ ...one, arguments: one.arguments as Json })));
    const parts = text === '' ? native.parts : [{ kind: 'text' as const, text }, ...native.parts];
    return { parts, delivery };
  };
}
