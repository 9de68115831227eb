/** Checks that a model which cannot be forced to call a tool did so, and asks it once more where it did not. */

import type { StreamEvent } from '../../conversation/events.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import { calledFor, choiceInstruction } from '../../conversation/tools/forced-choice.ts';
import type { Conversation, ProtocolName, ToolChoice } from '../../conversation/types.ts';
import { addUsage, type Usage } from '../../conversation/usage.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import type { Continuation, Feature, FeatureContext, Interceptor } from '../feature.ts';

const CHOICES = needles('"tool_choice"', '"function_call"', '"toolConfig"', '"tool_config"');

/** State that the two hops of an exchange share. */
interface Asked {
  /** The hop that asks once more. */
  readonly hop: number;
  readonly blocks: number;
  readonly text: boolean;
  readonly usage: Usage | undefined;
}

/**
 * The feature for one exchange. Vendor fit has said the choice in the prompt and left a mark on the one that is sent.
 * Place it behind every feature that finds calls or runs tools.
 */
export class ForcedChoice implements Feature {
  readonly name = 'forced-choice';
  /** Undefined: no hop asks once more. */
  #asked: Asked | undefined;

  /** Only where vendor fit may have changed a choice: elsewhere there is nothing to check. */
  mayApply(body: Buffer, { target: { profile }, refusals }: FeatureContext): boolean {
    return (
      (profile.toolChoices !== undefined ||
        profile.thinkingToolChoices !== undefined ||
        refusals !== undefined) &&
      containsAny(body, CHOICES)
    );
  }

  intercept(sent: Conversation, context: FeatureContext): Interceptor | undefined {
    const asked = this.#asked;
    if (asked !== undefined) {
      return asked.hop === context.hop ? new SecondAnswer(asked, context.client) : undefined;
    }
    const { toolChoice } = sent.settings;
    const instead = toolChoice?.type === 'auto' ? toolChoice.instead : undefined;
    return instead === undefined ? undefined : this.#first(instead, sent, context);
  }

  #first(instead: ToolChoice, sent: Conversation, { hop, notes }: FeatureContext): Interceptor {
    return new FirstAnswer(instead, sent, (asked) => {
      this.#asked = { ...asked, hop: hop + 1 };
      notes.add('tool_call_repeated', '/messages', 'asked once more for the call');
    });
  }
}

/** Passes an answer on, but for its end where the call is missing. */
class FirstAnswer implements Interceptor {
  readonly #fold = new ReplyBuilder();
  #usage: Usage | undefined;
  #held = false;
  #ended = false;

  constructor(
    private readonly choice: ToolChoice,
    private readonly sent: Conversation,
    private readonly again: (asked: Omit<Asked, 'hop'>) => void,
  ) {}

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    this.#fold.push(event);
    switch (event.type) {
      case 'start':
        this.#usage = event.usage ?? this.#usage;
        return event;
      case 'usage':
        this.#usage = event.usage;
        return this.#held ? [] : event;
      case 'finish':
        this.#held = event.reason === 'stop' && !calledFor(this.choice, this.#fold.reply.blocks);
        return this.#held ? [] : event;
      case 'opaque':
        return this.#held ? [] : event;
      case 'end':
        this.#ended = true;
        return this.#held ? [] : event;
      default:
        return event;
    }
  }

  end(): readonly StreamEvent[] {
    return [];
  }

  continuation(): Continuation | undefined {
    if (!this.#held || !this.#ended) return undefined;
    const { blocks } = this.#fold.reply;
    return {
      run: async () => {
        this.again({
          blocks: blocks.length,
          text: blocks.some((block) => block.type === 'text' && block.text !== ''),
          usage: this.#usage,
        });
        const text = choiceInstruction(this.choice);
        return {
          ...this.sent,
          turns: [
            ...this.sent.turns,
            ...(blocks.length > 0 ? [{ role: 'assistant', blocks } as const] : []),
            { role: 'user', blocks: [{ type: 'text', text }] },
          ],
        };
      },
    };
  }
}

/** Joins the second answer to the first one. */
class SecondAnswer implements Interceptor {
  #shift: number | undefined;
  #usage: Usage | undefined;
  /** A text begins: Chat joins all texts into one string. */
  #gap: boolean;

  constructor(
    private readonly asked: Asked,
    private readonly client: ProtocolName,
  ) {
    this.#gap = asked.text;
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        this.#usage = event.usage ?? this.#usage;
        return [];
      case 'usage':
        this.#usage = event.usage;
        return [];
      case 'finish': {
        // Another feature that joins hops has counted the first one already.
        const joined = this.#shift === 0 && this.asked.blocks > 0;
        const { usage: first } = this.asked;
        const usage =
          joined || first === undefined || this.#usage === undefined
            ? (this.#usage ?? first)
            : addUsage(first, this.#usage);
        return usage === undefined ? event : [{ type: 'usage', usage }, event];
      }
      case 'block-start':
        this.#shift ??= this.asked.blocks - event.index;
        return { ...event, index: event.index + this.#shift };
      case 'delta':
      case 'sealed':
      case 'citation':
      case 'logprobs':
      case 'block-stop': {
        const index = event.index + (this.#shift ?? 0);
        if (event.type !== 'delta' || event.text === '') return { ...event, index };
        const gap = this.#gap && this.client === 'openai-chat';
        this.#gap = false;
        return { ...event, index, text: gap ? `\n\n${event.text}` : event.text };
      }
      default:
        return event;
    }
  }

  end(): readonly StreamEvent[] {
    return [];
  }
}
