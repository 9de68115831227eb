/** Recovers tool calls that a model wrote into its answer as text, for every provider and protocol. */

import type { Target } from '../../conversation/target.ts';
import { mentionsTools } from '../../conversation/tools/mentions-tools.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import {
  type Feature,
  type FeatureContext,
  type Interceptor,
  lazyInterceptor,
} from '../feature.ts';
import { Search } from './block/reading.ts';
import { EVERYTHING, FAMILIES, type Lexicon, lexicon } from './grammars.ts';
import { LeakInterceptor } from './intercept.ts';
import type { ScanRules } from './scan/openings.ts';
import { quotationsIn } from './scan/quotations.ts';
import { TextScanner } from './scan/text-scanner.ts';
import { toolIndex } from './tool-index.ts';
import { Repairs } from './values/repair-json.ts';

export { FAMILIES } from './grammars.ts';

export interface LeakReport {
  readonly family: string;
  /** recovered: it became a call; removed: the markup was removed; left: it stays in the text. */
  readonly outcome: 'recovered' | 'removed' | 'left';
  readonly target: Target;
}

/** Thinking without an opening tag. Only if the profile names it, because all text has to wait for the closer. */
const UNOPENED_THINKING = 'think-unopened';
const DEFAULT_FAMILIES: readonly string[] = FAMILIES.filter(
  (family) => family !== UNOPENED_THINKING,
);

/**
 * On Messages `<think>` stays text: a thinking block made from it has no signature, and Anthropic refuses it
 * when the client sends it back.
 */
const WITHOUT_THINK = DEFAULT_FAMILIES.filter((family) => family !== 'think-tags');

const defaultFamilies = (protocol: ProtocolName) =>
  protocol === 'anthropic-messages' ? WITHOUT_THINK : DEFAULT_FAMILIES;

interface Grammar {
  readonly families: ReadonlySet<string>;
  /** All words; those that may begin a leak in text; those that may begin one in reasoning. */
  readonly all: Lexicon;
  readonly text: Lexicon;
  readonly reasoning: Lexicon;
}

/** What is looked for: calls and thinking, or, where nothing can be called, thinking alone. */
type Sought = 'calls' | 'thinking';
const THINKING: ReadonlySet<string> = new Set(['think-tags', UNOPENED_THINKING]);

/** Keyed by the profile's list of families; profiles are few and made once. */
const grammars = {
  calls: new WeakMap<readonly string[], Grammar>(),
  thinking: new WeakMap<readonly string[], Grammar>(),
};

function grammarOf({ profile, protocol }: Target, sought: Sought): Grammar {
  const families = profile.leakFamilies ?? defaultFamilies(protocol);
  const known = grammars[sought].get(families);
  if (known !== undefined) return known;
  const inForce = new Set(
    sought === 'calls' ? families : families.filter((family) => THINKING.has(family)),
  );
  const words = [...EVERYTHING.words.values()].filter(
    ({ family }) => family === 'stop' || inForce.has(family),
  );
  const begins = words.filter(({ opens, notation }) => opens !== undefined || notation !== 'plain');
  const grammar: Grammar = {
    families: inForce,
    all: lexicon(words, true),
    text: lexicon(begins),
    // Reasoning may contain its own tags; that is no leak.
    reasoning: lexicon(begins.filter(({ family }) => family !== 'think-tags')),
  };
  grammars[sought].set(families, grammar);
  return grammar;
}

/** When to look for leaks although the client's request names no tools. */
export interface LeakWatch {
  /** For all bodies, because tools are added later. */
  readonly everyBody?: boolean;
  /** For all answers, even if the request has no tools. */
  readonly everyAnswer?: boolean;
}

/**
 * @param report called for every leak, for the log (vendor, model, family) and the metric
 *   `leaked_calls_total{family,outcome}`
 */
export function leakedCalls(
  report: (leak: LeakReport) => void,
  { everyBody = false, everyAnswer = false }: LeakWatch = {},
): Feature {
  return {
    name: 'leaked-calls',
    mayApply: (body, { client, target }) =>
      everyBody || everyAnswer || client !== target.protocol || mentionsTools(body),
    intercept(sent, context) {
      const { client, target } = context;
      const { leakFamilies } = target.profile;
      if (leakFamilies?.length === 0) return undefined;
      // Without tools nothing can be called, but models imitate the calls of a history.
      const sought = everyAnswer || sent.tools.length > 0 || hasCalls(sent) ? 'calls' : 'thinking';
      // Of a vendor that speaks the client's protocol, such an answer keeps its bytes.
      if (sought === 'thinking' && client === target.protocol) return undefined;
      const grammar = grammarOf(target, sought);
      if (grammar.families.size === 0) return undefined;
      return lazyInterceptor(
        (texts) => !grammar.families.has(UNOPENED_THINKING) && texts.every(TextScanner.isPlain),
        () => scanInterceptor(sent, context, sought, grammar, report),
      );
    },
  };
}

function scanInterceptor(
  sent: Conversation,
  { target, notes }: FeatureContext,
  sought: Sought,
  grammar: Grammar,
  report: (leak: LeakReport) => void,
): Interceptor {
  const callable = sent.settings.toolChoice?.type !== 'none';
  const all = toolIndex(sent.tools);
  const tools = callable ? all : NO_TOOLS;
  const { format } = sent.settings;
  const plain = format === undefined || format.type === 'text';
  const repairs = new Repairs();
  const rules: Omit<ScanRules, 'lexicon'> = {
    all: grammar.all,
    tools,
    repairs,
    search: new Search(),
    isQuotation: quotationsIn(sent.turns),
    json: plain && tools.size > 0 && grammar.families.has('json'),
    results: grammar.families.has('tool-result'),
    pythonic: plain && grammar.families.has('pythonic'),
    unopened: grammar.families.has(UNOPENED_THINKING),
  };
  return new LeakInterceptor({
    text: { ...rules, lexicon: grammar.text },
    reasoning: { ...rules, lexicon: grammar.reasoning, unopened: false },
    native: { tools: all, all: EVERYTHING, repairs, provider: target.provider },
    signed: target.protocol === 'anthropic-messages',
    startOnly: sought === 'thinking',
    notes,
    report: (family, outcome) => report({ family, outcome, target }),
  });
}

const NO_TOOLS = toolIndex([]);

const hasCalls = (sent: Conversation): boolean =>
  sent.turns.some(({ blocks }) => blocks.some(({ type }) => type === 'tool-call'));
