/** Decides the whole answer of the demo model before any of it is sent. */

import type { DemoRequest } from './chat-request.ts';
import { asksToThink, readIntent } from './intent.ts';
import { playRole } from './role-play.ts';
import { sampleSchema } from './schema-sampler.ts';
import { callInput } from './tool-arguments.ts';
import { pickTools } from './tool-pick.ts';
import { announce, explain, languageOf, musings, NOTICE, summarize } from './wording.ts';

export interface PlannedCall {
  readonly kind: 'function' | 'custom';
  readonly name: string;
  readonly input: string;
}

export interface Plan {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly PlannedCall[];
}

/** The answer to this request: the same request, the same answer. */
export function planAnswer(request: DemoRequest): Plan {
  const { question } = request;
  const role = playRole(request);
  if (role !== undefined) return { reasoning: '', ...role };
  const language = languageOf(question);
  const reasoning = asksToThink(question, request.effort) ? musings(request, language) : '';
  const calls = planCalls(request);
  if (calls.length > 0) {
    const names = [...new Set(calls.map((call) => call.name))];
    // A forced call comes without words, and with stop sequences words might cut it off.
    const silent = request.choice === 'forced' || request.stop.length > 0;
    return { reasoning, text: silent ? '' : announce(names, language), calls };
  }
  return { reasoning, text: planText(request, language), calls: [] };
}

function planCalls(request: DemoRequest): readonly PlannedCall[] {
  const { question, tools, choice, rounds, cwd } = request;
  if (tools.length === 0 || choice === 'none') return [];
  const intent = readIntent(question);
  const facts = { question, intent, cwd };
  // The tour takes one tool a round; everything else is one round and a summary of its results.
  if (intent.kind === 'tour') {
    const tool = tools[rounds];
    return tool
      ? [{ kind: tool.kind, name: tool.name, input: callInput(tool, { ...facts, position: 0 }) }]
      : [];
  }
  if (rounds > 0) return [];
  const picked = pickTools(tools, question, intent, choice === 'forced', request.parallel);
  return picked.map((tool, position) => ({
    kind: tool.kind,
    name: tool.name,
    input: callInput(tool, { ...facts, position }),
  }));
}

function planText(request: DemoRequest, language: 'en' | 'zh'): string {
  if (request.format) return planJson(request);
  if (request.results.length > 0) return summarize(request.results, language);
  const intent = readIntent(request.question);
  if (intent.kind === 'say') return NOTICE[language] + intent.text;
  if (intent.kind === 'count') {
    return NOTICE[language] + Array.from({ length: intent.to }, (_, i) => i + 1).join(' ');
  }
  return explain(request, language);
}

function planJson(request: DemoRequest): string {
  const schema = request.format!;
  const value =
    Object.keys(schema).length > 0
      ? sampleSchema(schema, { optional: true })
      : {
          model: 'hopgate demo model',
          question: request.question,
          results: request.results.map((r) => r.text),
        };
  return JSON.stringify(value ?? {});
}
