/** A client as `setup` sees it: how to change the text of its settings, and how to change it back. */

import type { Environment } from '../../../config/environment.ts';
import type { ProtocolName } from '../../../conversation/types.ts';
import type { Json } from '../../../lib/json/json.ts';
import type { LimitsOf } from './model-limits.ts';

/** What is to be written, independent of the client. */
export interface SetupPlan {
  /** `http://127.0.0.1:5520`, without a slash at the end. */
  readonly url: string;
  /** A key that the gateway accepts; undefined when it needs none. */
  readonly key: string | undefined;
  /** The model to ask for; undefined: the client keeps its own names, which the routes map. */
  readonly model: string | undefined;
  /** The model that answers, whatever name the client requests; undefined when it is not known. */
  readonly answeringModel: string | undefined;
  /** The model for small side jobs; the same as `model` when left out. */
  readonly smallModel: string | undefined;
  /** Does a target answer for this name? */
  readonly serves: (model: string) => boolean;
  /** The name that begins with `claude-` by which a model can be asked for; undefined: none. */
  readonly claudeNameOf: (model: string) => string | undefined;
  /** Every model the gateway names. */
  readonly models: readonly string[];
  /** What is known of each. */
  readonly limitsOf: LimitsOf;
  /** The context window of a model in tokens: `--context` for the one to ask for, else what is known. */
  readonly contextOf: (model: string) => number | undefined;
  /** Context window of the answering model in tokens; undefined when it is not known. */
  readonly context: number | undefined;
  /** The vendor that answers has Claude's own checks of tool calls, by which Claude Code's auto mode works. */
  readonly checksTools: boolean;
  /** `--protocol`, for clients that speak several. */
  readonly protocol: ProtocolName | undefined;
  /** The user named the model: it becomes the client's default. */
  readonly modelChosen: boolean;
}

/** The value of a member before an edit; without `before` the member did not exist. */
export interface EditUndo {
  readonly path: readonly string[];
  readonly before?: Json;
  readonly after: Json;
  /** `after` is an item of the list there. */
  readonly item?: true;
}

export interface FileChange {
  readonly text: string;
  /** What `strip` needs to undo the change in a file that was edited since. */
  readonly undo: readonly EditUndo[];
}

export interface SettingsFile {
  /** @throws Error with a message for people when setup must not touch the client's settings */
  path(environment: Environment): string;
  /**
   * Undefined: nothing needs to stand there.
   * @throws Error with a message for people when the file cannot be changed safely
   */
  apply(text: string | undefined, plan: SetupPlan): FileChange | undefined;
  strip(text: string, undo: readonly EditUndo[]): string;
}

export interface Client {
  readonly name: string;
  readonly title: string;
  /** It asks for models of Claude by their names; where a route takes those, no model is set. */
  readonly asksForClaude?: true;
  /** Values of `--protocol`, the default first. Undefined for a client that speaks one protocol. */
  readonly protocols?: readonly ProtocolName[];
  /** The files to change, the first one always. None: the client keeps its settings where no program may write. */
  readonly files: readonly SettingsFile[];
  /** What else the user should know, a sentence each; `text` is the first file's, before the change. */
  hints(plan: SetupPlan, text: string | undefined): readonly string[];
}

/** The models for a client that lists them, the one to ask for first. @throws Error when there is none */
export function namesFor({ model, models }: SetupPlan, title: string): readonly string[] {
  const names = [...new Set([...(model === undefined ? [] : [model]), ...models])];
  if (names.length === 0) throw new Error(`${title} needs a model: pass --model NAME`);
  return names;
}

/** The model to ask for, for a client that has one. @throws Error when there is none */
export const modelFor = (plan: SetupPlan, title: string): string => namesFor(plan, title)[0]!;

/** A name of Claude's, with or without the vendor before it. */
export const isClaude = (model: string): boolean => /(^|\/)claude-/.test(model);
