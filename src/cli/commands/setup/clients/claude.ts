/** Claude Code: the `env` block of `~/.claude/settings.json`. */

import { isObject } from '../../../../lib/json/json.ts';
import { type Client, isClaude, type SetupPlan } from '../client.ts';
import type { JsonEdit } from '../json-edits.ts';
import { getAt } from '../jsonc.ts';
import { inFolder, jsonFile } from '../settings-files.ts';

// Claude Code assumes a window of a million tokens for models that it does not know, and then compacts far too
// late. Half of the vendors' models have at least this much.
const CAUTIOUS_CONTEXT = 128_000;

/** What Claude Code assumes for the models it knows. */
const CLAUDE_CONTEXT = 200_000;

export const claude: Client = {
  name: 'claude',
  title: 'Claude Code',
  asksForClaude: true,

  files: [jsonFile(inFolder('CLAUDE_CONFIG_DIR', '.claude', 'settings.json'), edits)],

  hints(plan, text) {
    const hints = ['Start a new "claude" session; one that is running keeps its old settings.'];
    const env = text === undefined || text.trim() === '' ? undefined : getAt(text, ['env']);
    if (isObject(env) && env.ANTHROPIC_API_KEY !== undefined) {
      hints.push(
        'The env block holds an ANTHROPIC_API_KEY as well: Claude Code asks at its start which of the two to use. Take it out, or answer that the token is meant.',
      );
    }
    if (plan.model === undefined) {
      if (
        plan.answeringModel !== undefined &&
        !isClaude(plan.answeringModel) &&
        plan.context === undefined
      ) {
        hints.push(
          `The context window of "${plan.answeringModel}", which answers, is not known here: Claude Code takes it for that of its own models. Pass --context N.`,
        );
      }
      if (plan.context !== undefined && plan.context < MIN_COMPACT_WINDOW) {
        hints.push(
          `Claude Code compacts a conversation with its own models at ${MIN_COMPACT_WINDOW} tokens at the earliest, and "${plan.answeringModel}" has only ${plan.context}. Pass --model NAME, so that Claude Code asks for it by its name.`,
        );
      }
      hints.push(
        'Claude Code keeps asking for its own model names; the routes of the configuration say where they go.',
      );
    } else if (!isClaude(plan.model) && plan.context === undefined) {
      hints.push(
        `The context window of "${plan.model}" is not known here; ${CAUTIOUS_CONTEXT} tokens were taken. Pass --context N for another.`,
      );
    }
    if (!plan.checksTools) {
      hints.push(
        "Auto mode was switched off: it needs the vendor's own checks of tool calls, which only Claude has at a vendor that speaks Messages.",
      );
    }
    return hints;
  },
};

/** It takes a smaller window to compact at for this one, and says so at each start. */
const MIN_COMPACT_WINDOW = 100_000;

/**
 * Claude Code looks at the first of these only for models that are not its own; the second one holds for every model
 * (`/context` of 2.1.332).
 */
function setWindow(env: Record<string, string>, tokens: number): void {
  env.CLAUDE_CODE_MAX_CONTEXT_TOKENS = String(tokens);
  if (tokens >= MIN_COMPACT_WINDOW) env.CLAUDE_CODE_AUTO_COMPACT_WINDOW = String(tokens);
}

function edits(plan: SetupPlan): readonly JsonEdit[] {
  const env: Record<string, string> = {
    ANTHROPIC_BASE_URL: plan.url,
    // Without any token Claude Code asks its user to log in.
    ANTHROPIC_AUTH_TOKEN: plan.key ?? 'hopgate',
  };
  if (plan.model !== undefined) {
    const small = plan.smallModel ?? plan.model;
    env.ANTHROPIC_MODEL = plan.model;
    env.ANTHROPIC_DEFAULT_OPUS_MODEL = plan.model;
    env.ANTHROPIC_DEFAULT_SONNET_MODEL = plan.model;
    env.ANTHROPIC_DEFAULT_HAIKU_MODEL = small;
    env.CLAUDE_CODE_SUBAGENT_MODEL = plan.model;
    if (!isClaude(plan.model)) setWindow(env, plan.context ?? CAUTIOUS_CONTEXT);
  } else if (plan.answeringModel !== undefined && !isClaude(plan.answeringModel)) {
    // Claude Code shows and fills the window of the model it requests; another model answers.
    if (plan.context !== undefined) setWindow(env, Math.max(plan.context, MIN_COMPACT_WINDOW));
  } else if (plan.context !== undefined && plan.context < CLAUDE_CONTEXT) {
    // Claude Code fills the window of the model it requests; the model that answers has a smaller one.
    env.CLAUDE_CODE_AUTO_COMPACT_WINDOW = String(Math.max(plan.context, MIN_COMPACT_WINDOW));
  }
  const edits = Object.entries(env).map(([name, value]): JsonEdit => [['env', name], value]);
  // Without the vendor's checks, Claude Code 2.1.332 refuses each action in auto mode; with CLAUDE_CODE_AUTO_MODE_SERVER=0
  // it asks the model up to three times for each action, with a prompt of 143 KB, and refuses it if the answer is none.
  if (!plan.checksTools) edits.push([['disableAutoMode'], 'disable']);
  return edits;
}
